//! The app, its inputs, and the order of the calls.
//!
//! All of it is fixed: the same calls in the same order on every machine and in every run.

use sde::key::{Key, with_encoder};
use sde::{Error, Inputs, Sde, Value, inputs};

/// The number of different inputs: the points of a few scans.
pub const KEYS: usize = 1024;

/// An energy of a molecule: the arguments are typical, the result doesn't matter.
#[sde::app]
pub fn energy(
    molecule: &str,
    basis: &str,
    distance: f64,
    angle: f64,
    charge: i32,
    spherical: bool,
) -> f64 {
    let sizes = (molecule.len() + basis.len()) as f64;
    sizes + distance * angle + f64::from(charge) + f64::from(u8::from(spherical))
}

/// The arguments of one call.
#[derive(Clone)]
pub struct Arguments {
    pub molecule: &'static str,
    pub basis: &'static str,
    pub distance: f64,
    pub angle: f64,
    pub charge: i32,
    pub spherical: bool,
}

impl Arguments {
    fn number(number: usize) -> Self {
        let of = |names: &[&'static str], at: usize| names[at % names.len()];
        Self {
            molecule: of(&["water", "ammonia", "formaldehyde"], number),
            basis: of(&["STO-3G", "6-31G*", "cc-pVDZ"], number / 3),
            distance: 0.8 + number as f64 * 1e-4,
            angle: 104.5,
            charge: 0,
            spherical: true,
        }
    }

    /// A typed call with these arguments.
    #[inline(always)]
    pub fn call(&self, sde: &Sde) -> Result<Value<f64>, Error> {
        energy.call(
            sde,
            self.molecule,
            self.basis,
            self.distance,
            self.angle,
            self.charge,
            self.spherical,
        )
    }

    /// The arguments as `Inputs`.
    pub fn inputs(&self) -> Inputs {
        inputs! {
            molecule: self.molecule,
            basis: self.basis,
            distance: self.distance,
            angle: self.angle,
            charge: self.charge,
            spherical: self.spherical,
        }
    }

    /// The bytes that the engine hashes for the arguments.
    pub fn encoded(&self) -> Vec<u8> {
        let bytes = with_encoder(|to| {
            to.named("molecule", self.molecule)?;
            to.named("basis", self.basis)?;
            to.named("distance", &self.distance)?;
            to.named("angle", &self.angle)?;
            to.named("charge", &self.charge)?;
            to.named("spherical", &self.spherical)?;
            Ok::<_, sde::key::FingerprintError>(to.finish()?.to_vec())
        });
        bytes.unwrap()
    }
}

/// The calls: all inputs in every form they are needed in, in a fixed random order.
pub struct Trace {
    pub arguments: Vec<Arguments>,
    pub inputs: Vec<Inputs>,
    pub encoded: Vec<Vec<u8>>,
    order: Vec<u32>,
}

impl Trace {
    pub fn new() -> Self {
        let trace = Self::of(KEYS);
        Self {
            inputs: trace.arguments.iter().map(Arguments::inputs).collect(),
            ..trace
        }
    }

    /// A trace of this many inputs, without `Inputs`.
    pub fn of(count: usize) -> Self {
        let arguments: Vec<_> = (0..count).map(Arguments::number).collect();
        Self {
            inputs: Vec::new(),
            encoded: arguments.iter().map(Arguments::encoded).collect(),
            order: shuffled(count as u32),
            arguments,
        }
    }

    /// The number of the inputs of this call. Never the same twice in a row.
    #[inline(always)]
    pub fn at(&self, call: u64) -> usize {
        self.order[call as usize % self.order.len()] as usize
    }

    /// As [`at`](Self::at), for one of two threads, each with a half of the inputs for itself.
    #[inline(always)]
    pub fn at_half(&self, thread: usize, call: u64) -> usize {
        let half = KEYS / 2;
        self.order[thread % 2 * half + call as usize % half] as usize
    }
}

/// BLAKE3 of bytes, as the references use it.
#[inline(always)]
pub fn hash(bytes: &[u8]) -> Key {
    Key::from_bytes(*blake3::hash(bytes).as_bytes())
}

/// The numbers below `count` in an order that looks random (Fisher and Yates, with splitmix64).
fn shuffled(count: u32) -> Vec<u32> {
    let mut state = 0x5de_5eed_u64;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, (random() % (last as u64 + 1)) as usize);
    }
    order
}

/// A line about the inputs.
pub fn about() -> String {
    let lengths = (0..KEYS).map(|number| Arguments::number(number).encoded().len());
    let mean = lengths.sum::<usize>() / KEYS;
    format!("{KEYS} different inputs, encoded in {mean} bytes on average.")
}
