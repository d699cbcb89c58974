//! The repulsion integrals, computed on a device.
//!
//! Shells are sorted by angular momentum, pairs of them and quartets of pairs by class. For each class of
//! pairs and of quartets there is a kernel. What comes back is put in the order of
//! [`Repulsion`], so that this app can stand in the slot of the one that computes on the processor.

#![allow(unsafe_code, reason = "launches")]

use std::collections::BTreeMap;

use sde::opencl::Kernel;
use sde::{App, AppError, AppInfo, Fingerprint, Handle, Inputs, ResultMap, ResultSpec, Tag};
use sde_apps::basis::MolecularBasis;
use sde_apps::integrals::Repulsion;

use crate::device::{Argument, Gpu, Numbers};
use crate::meter::Family;
use crate::source::{self, Element};

/// How many items run together.
const GROUP: usize = 8;

/// The repulsion integrals of a basis. Input: `basis` ([`MolecularBasis`]); result: `result`
/// ([`Repulsion`]).
#[derive(Clone, Fingerprint)]
pub struct DeviceRepulsion {
    pub gpu: Gpu,
    pub element: Element,
}

impl App for DeviceRepulsion {
    fn info(&self) -> AppInfo {
        AppInfo::new("DeviceRepulsion", "1")
            .about("electron repulsion integrals, computed on a device of OpenCL")
            .input::<MolecularBasis>("basis")
            .result(ResultSpec::new::<Repulsion>("result").tagged(Tag::Intermediate))
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let basis = inputs.get::<MolecularBasis>("basis")?;
        let values = match self.element {
            Element::Float => self.compute::<f32>(sde, basis)?,
            Element::Double => self.compute::<f64>(sde, basis)?,
        };
        let repulsion = Repulsion::from_values(basis.functions(), values)?;
        Ok(ResultMap::new().with("result", repulsion))
    }
}

/// A number of a device.
pub trait Real: Copy + Default {
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
}

impl Real for f32 {
    fn of(value: f64) -> Self {
        value as Self
    }

    fn wide(self) -> f64 {
        self.into()
    }
}

impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }

    fn wide(self) -> f64 {
        self
    }
}

/// The functions of one angular momentum at one place.
struct Shell<'a> {
    l: usize,
    center: [f64; 3],
    exponents: &'a [f64],
    coefficients: &'a [f64],
    first: usize,
}

fn shells(basis: &MolecularBasis) -> Vec<Shell<'_>> {
    let mut found = Vec::new();
    for shell in basis.shells() {
        let mut first = shell.first;
        for part in &shell.parts {
            found.push(Shell {
                l: part.l.into(),
                center: shell.center,
                exponents: &shell.exponents,
                coefficients: &part.coefficients,
                first,
            });
            first += part.functions();
        }
    }
    found
}

/// Pairs of shells of two angular momenta.
#[derive(Default)]
struct Pairs {
    /// Where the functions of both shells begin.
    starts: Vec<[usize; 2]>,
    /// Where the pairs of primitives of each begin, and how many there are.
    primitives: Vec<[usize; 2]>,
    /// Exponents, coefficient and centres of the pairs of primitives.
    numbers: Vec<f64>,
}

/// A class of pairs on the device.
struct Class<T> {
    momenta: [usize; 2],
    pairs: Pairs,
    made: Numbers<T>,
}

fn classes(basis: &MolecularBasis) -> BTreeMap<[usize; 2], Pairs> {
    let shells = shells(basis);
    let mut classes = BTreeMap::<_, Pairs>::new();
    for (n, one) in shells.iter().enumerate() {
        for other in &shells[..=n] {
            let (a, b) = if one.l >= other.l {
                (one, other)
            } else {
                (other, one)
            };
            classes.entry([a.l, b.l]).or_default().add(a, b);
        }
    }
    classes
}

impl Pairs {
    fn add(&mut self, a: &Shell<'_>, b: &Shell<'_>) {
        self.starts.push([a.first, b.first]);
        let count = a.exponents.len() * b.exponents.len();
        self.primitives.push([self.numbers.len() / 9, count]);
        for (alpha, c) in a.exponents.iter().zip(a.coefficients) {
            for (beta, d) in b.exponents.iter().zip(b.coefficients) {
                self.numbers.extend([*alpha, *beta, c * d]);
                self.numbers.extend(a.center);
                self.numbers.extend(b.center);
            }
        }
    }
}

type Done<T> = Result<T, AppError>;

impl DeviceRepulsion {
    fn compute<T: Real>(&self, sde: &Handle, basis: &MolecularBasis) -> Done<Vec<f64>> {
        let classes = classes(basis);
        let momenta: Vec<_> = classes.keys().copied().collect();
        let of_pairs = momenta
            .iter()
            .map(|pair| source::pairs(self.element, *pair));
        let of_pairs: Vec<_> = of_pairs.collect();
        let of_quartets = momenta.iter().enumerate().flat_map(|(n, bra)| {
            let kets = momenta[..=n].iter();
            kets.map(|ket| source::repulsion(self.element, *bra, *ket))
        });
        let of_quartets: Vec<_> = of_quartets.collect();
        let of_pairs = self.gpu.kernels(sde, Family::Pairs, &of_pairs)?;
        let of_quartets = self.gpu.kernels(sde, Family::Repulsion, &of_quartets)?;
        let mut made = Vec::new();
        for ((momenta, pairs), kernel) in classes.into_iter().zip(&of_pairs) {
            made.push(Class {
                made: self.pairs::<T>(kernel, momenta, &pairs)?,
                momenta,
                pairs,
            });
        }
        let places = triangle(triangle(basis.functions(), 0), 0);
        let mut values = vec![0.0; places];
        let mut kernels = of_quartets.iter();
        for (n, bra) in made.iter().enumerate() {
            for (ket, kernel) in made[..=n].iter().zip(kernels.by_ref()) {
                self.quartets(kernel, bra, ket, &mut values)?;
            }
        }
        Ok(values)
    }

    fn pairs<T: Real>(
        &self,
        kernel: &Kernel,
        momenta: [usize; 2],
        pairs: &Pairs,
    ) -> Done<Numbers<T>> {
        let gpu = &self.gpu;
        let count = pairs.numbers.len() / 9;
        let numbers: Vec<T> = pairs.numbers.iter().map(|x| T::of(*x)).collect();
        let numbers = gpu.buffer(&numbers)?;
        let made = gpu.empty::<T>(count * source::pair_length(momenta))?;
        let arguments = [
            numbers.argument(),
            made.argument(),
            Argument::Int(count.try_into()?),
        ];
        let items = count.next_multiple_of(GROUP);
        // SAFETY: two buffers and an `int`; each of the first `count` items reads 9 numbers of the
        // first and writes `pair_length` of the second, the others do nothing.
        unsafe { gpu.launch(Family::Pairs, kernel, &arguments, &[items], &[GROUP]) }
            .map_err(told)?;
        Ok(made)
    }

    fn quartets<T: Real>(
        &self,
        kernel: &Kernel,
        bra: &Class<T>,
        ket: &Class<T>,
        values: &mut [f64],
    ) -> Done<()> {
        let gpu = &self.gpu;
        let is_same = bra.momenta == ket.momenta;
        let (bras, kets) = (bra.pairs.starts.len(), ket.pairs.starts.len());
        let all =
            (0..bras).flat_map(|b| (0..if is_same { b + 1 } else { kets }).map(move |k| [b, k]));
        let all: Vec<[usize; 2]> = all.collect();
        let mut quartets = Vec::<i32>::new();
        for [b, k] in &all {
            for place in [bra.pairs.primitives[*b], ket.pairs.primitives[*k]].concat() {
                quartets.push(place.try_into()?);
            }
        }
        let quartets = gpu.buffer(&quartets)?;
        let width = source::functions(bra.momenta) * source::functions(ket.momenta);
        let out = gpu.empty::<T>(all.len() * width)?;
        let arguments = [
            bra.made.argument(),
            ket.made.argument(),
            quartets.argument(),
            out.argument(),
            Argument::Int(all.len().try_into()?),
        ];
        let items = all.len().next_multiple_of(GROUP);
        // SAFETY: four buffers and an `int`; each of the first items reads its quartet and the pairs of
        // primitives that it names, which were made for these classes, and writes `width` numbers.
        unsafe { gpu.launch(Family::Repulsion, kernel, &arguments, &[items], &[GROUP]) }
            .map_err(told)?;
        let out = gpu.read(&out)?;
        for ([b, k], block) in all.iter().zip(out.chunks(width)) {
            let starts = [bra.pairs.starts[*b], ket.pairs.starts[*k]].concat();
            put(values, &starts, [bra.momenta, ket.momenta], block);
        }
        Ok(())
    }
}

fn told(error: Box<dyn std::error::Error + Send + Sync>) -> AppError {
    AppError::message(error.to_string())
}

/// Puts the integrals of a quartet where they belong.
fn put<T: Real>(values: &mut [f64], starts: &[usize], momenta: [[usize; 2]; 2], block: &[T]) {
    let count = |l: usize| (l + 1) * (l + 2) / 2;
    let [[a, b], [c, d]] = momenta.map(|pair| pair.map(count));
    for (n, value) in block.iter().enumerate() {
        let l = starts[3] + n % d;
        let k = starts[2] + n / d % c;
        let j = starts[1] + n / (d * c) % b;
        let i = starts[0] + n / (d * c * b) % a;
        let first = triangle(i.max(j), i.min(j));
        let second = triangle(k.max(l), k.min(l));
        values[triangle(first.max(second), first.min(second))] = value.wide();
    }
}

/// The place of (i, j), i not below j, in a triangle stored by rows.
fn triangle(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}
