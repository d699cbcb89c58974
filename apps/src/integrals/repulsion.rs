//! The repulsion integrals (ij|kl) of the electrons.
//!
//! There are n⁴/8 different ones, by far the most numerous numbers of a calculation and the
//! most expensive. Each quartet of shells is computed from its two [`ShellPair`]s:
//! Hermite Gaussians of one pair of primitives interact with those of the other, the sum
//! over the second pair's primitives is turned into its functions, then the first's.
//!
//! The work is spread over threads by pairs of shells (the first pair of each quartet). Each
//! integral is computed at one place, in one order of operations, and each pair writes rows
//! of its own; so the bits do not depend on the number of threads. Quartets of (ab|ad) kind
//! are computed twice for that, a few percent of the work, and half of each is dropped.

use super::IntegralError;
use super::hermite::{Coulomb, triple_count, triple_index, triples};
use super::pairs::{ShellPair, largest_root};
use crate::basis::MolecularBasis;
use rayon::prelude::*;
use sde::Fingerprint;
use serde::{Deserialize, Serialize};

/// Quartets of shells whose integrals are all below this by the Schwarz inequality are
/// taken as zero.
pub const NEGLIGIBLE: f64 = 1e-13;

/// As [`NEGLIGIBLE`], for quartets of primitives. It must be far smaller, since thousands make up an
/// integral and the omitted ones mostly have one sign: 1e-17 costs benzene 8e-10 hartree.
const NEGLIGIBLE_PRIMITIVE: f64 = 1e-20;

/// The default limit of the memory of integrals: 8 GiB, enough for 300 functions.
pub const DEFAULT_MEMORY_LIMIT: u64 = 8 << 30;

/// All electron repulsion integrals, each stored once.
///
/// (ij|kl) is the repulsion of the charge distributions ij and kl in hartree. It does not
/// change when i and j, k and l, or the two pairs are exchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Fingerprint)]
#[serde(try_from = "Unchecked")]
pub struct Repulsion {
    functions: usize,
    #[serde(with = "sde::bulk")]
    values: Vec<f64>,
}

/// Serialized integrals before they are checked.
#[derive(Deserialize)]
struct Unchecked {
    functions: usize,
    #[serde(with = "sde::bulk")]
    values: Vec<f64>,
}

impl TryFrom<Unchecked> for Repulsion {
    type Error = IntegralError;

    fn try_from(raw: Unchecked) -> Result<Self, IntegralError> {
        Self::from_values(raw.functions, raw.values)
    }
}

/// The number of different integrals over this many functions; `None` if it is too large.
fn packed_count(functions: usize) -> Option<u128> {
    let n = functions as u128;
    let pairs = n.checked_mul(n.checked_add(1)?)? / 2;
    Some(pairs.checked_mul(pairs.checked_add(1)?)? / 2)
}

/// The place of (i, j), i not below j, in a triangle stored by rows.
#[inline]
pub(crate) fn triangle(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}

impl Repulsion {
    /// Computes all integrals, on the threads of the current rayon pool.
    ///
    /// Time grows with the fourth power of the number of functions, and so does the memory:
    /// 173 MB for 114 functions, 8 GB for 300.
    ///
    /// # Errors
    /// [`IntegralError::Memory`] when they would take more than `memory_limit` bytes (see
    /// [`DEFAULT_MEMORY_LIMIT`]), or more than the system gives.
    pub fn compute(basis: &MolecularBasis, memory_limit: u64) -> Result<Self, IntegralError> {
        let functions = basis.functions();
        let mut values = allocate(functions, memory_limit)?;
        let quartets = Quartets::new(basis);
        jobs(&quartets.pairs, &mut values)
            .into_par_iter()
            .with_max_len(1)
            .for_each_init(Scratch::default, |scratch, job| quartets.fill(job, scratch));
        Ok(Self { functions, values })
    }

    /// Wraps integrals that were computed elsewhere, in the order of [`values`](Self::values).
    ///
    /// # Errors
    /// [`IntegralError::Count`] if their number does not fit that of the functions.
    pub fn from_values(functions: usize, values: Vec<f64>) -> Result<Self, IntegralError> {
        match packed_count(functions) == Some(values.len() as u128) {
            true => Ok(Self { functions, values }),
            false => Err(IntegralError::Count {
                functions,
                values: values.len(),
            }),
        }
    }

    /// The number of functions.
    #[must_use]
    pub fn functions(&self) -> usize {
        self.functions
    }

    /// (ij|kl) in hartree, the indices in any order.
    ///
    /// # Panics
    /// When an index is not below the number of functions.
    #[must_use]
    pub fn get(&self, i: usize, j: usize, k: usize, l: usize) -> f64 {
        assert!(
            [i, j, k, l].iter().all(|&x| x < self.functions),
            "({i} {j}|{k} {l}) is not among the integrals of {} functions",
            self.functions
        );
        let first = triangle(i.max(j), i.min(j));
        let second = triangle(k.max(l), k.min(l));
        self.values[triangle(first.max(second), first.min(second))]
    }

    /// The integrals (ij|kl) with i ≥ j, k ≥ l and ij ≥ kl, row by row of a triangle whose
    /// rows are the pairs ij and whose columns are the pairs kl, themselves numbered
    /// i(i+1)/2 + j.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

fn allocate(functions: usize, limit: u64) -> Result<Vec<f64>, IntegralError> {
    let count = packed_count(functions);
    let bytes = count.map_or(u128::MAX, |count| count.saturating_mul(8));
    let error = IntegralError::Memory {
        functions,
        bytes,
        limit,
    };
    if bytes > u128::from(limit) {
        return Err(error);
    }
    let Some(count) = count.and_then(|count| usize::try_from(count).ok()) else {
        return Err(error);
    };
    let mut values = Vec::new();
    if values.try_reserve_exact(count).is_err() {
        return Err(error);
    }
    values.resize(count, 0.0);
    Ok(values)
}

/// The rows of the integrals that begin with one pair of shells.
struct Job<'a> {
    pair: usize,
    rows: Vec<Row<'a>>,
}

/// All (ij|kl) of one ij.
struct Row<'a> {
    i: usize,
    j: usize,
    values: &'a mut [f64],
}

/// Cuts the triangle into its rows and deals them out to the pairs of shells.
fn jobs<'a>(pairs: &[ShellPair], values: &'a mut [f64]) -> Vec<Job<'a>> {
    let last = pairs.last().map_or(0, |pair| pair.first.shell + 1);
    let mut shell_of = Vec::new();
    for pair in pairs
        .iter()
        .filter(|pair| pair.first.shell == pair.second.shell)
    {
        shell_of.extend(std::iter::repeat_n(pair.first.shell, pair.first.functions));
    }
    let mut jobs: Vec<Job> = (0..triangle(last, 0))
        .map(|pair| Job {
            pair,
            rows: Vec::new(),
        })
        .collect();
    let mut rest = values;
    for i in 0..shell_of.len() {
        for j in 0..=i {
            let (row, after) = std::mem::take(&mut rest).split_at_mut(triangle(i, j) + 1);
            rest = after;
            let pair = triangle(shell_of[i], shell_of[j]);
            jobs[pair].rows.push(Row { i, j, values: row });
        }
    }
    jobs
}

/// Data that all quartets share.
struct Quartets {
    /// Pair (a, b) of shells at [`triangle`] of a and b.
    pairs: Vec<ShellPair>,
    /// By degree.
    coulomb: Vec<Coulomb>,
    /// By the degrees of the two pairs: the place of R for the sum of two triples.
    sums: Vec<Vec<Vec<u16>>>,
}

/// Arrays that are filled anew for each quartet.
#[derive(Default)]
struct Scratch {
    derivatives: Vec<f64>,
    half: Vec<f64>,
    block: Vec<f64>,
}

impl Quartets {
    fn new(basis: &MolecularBasis) -> Self {
        let shells = basis.shells();
        let highest = shells
            .iter()
            .map(|shell| shell.max_angular())
            .max()
            .unwrap_or(0);
        let mut quartets = Self {
            pairs: Vec::new(),
            coulomb: (0..=4 * highest).map(Coulomb::new).collect(),
            sums: (0..=2 * highest)
                .map(|bra| (0..=2 * highest).map(|ket| sums(bra, ket)).collect())
                .collect(),
        };
        let places: Vec<(usize, usize)> = (0..shells.len())
            .flat_map(|a| (0..=a).map(move |b| (a, b)))
            .collect();
        quartets.pairs = places
            .into_par_iter()
            .map_init(Scratch::default, |scratch, (a, b)| {
                let mut pair = ShellPair::new(basis, a, b);
                let width = pair.functions();
                quartets.compute(&pair, &pair, scratch);
                pair.bound = largest_root((0..width).map(|ab| scratch.block[ab * width + ab]));
                pair
            })
            .collect();
        quartets
    }

    /// Computes all integrals of the rows of one job.
    fn fill(&self, mut job: Job, scratch: &mut Scratch) {
        let bra = &self.pairs[job.pair];
        // Pairs up to (A, A), where A is the job's first shell: those beyond the job's own
        // hold some kl below its ij.
        for ket in &self.pairs[..triangle(bra.first.shell, bra.first.shell) + 1] {
            if bra.bound * ket.bound < NEGLIGIBLE {
                continue;
            }
            // The larger product is kept for last, when only one side's primitives are left.
            if ket.functions() > bra.functions() {
                self.compute(ket, bra, scratch);
                store(
                    &mut job.rows,
                    bra,
                    ket,
                    &scratch.block,
                    [1, bra.functions()],
                );
            } else {
                self.compute(bra, ket, scratch);
                store(
                    &mut job.rows,
                    bra,
                    ket,
                    &scratch.block,
                    [ket.functions(), 1],
                );
            }
        }
    }

    /// Computes all integrals of a quartet into `scratch.block`, by rows of `bra`'s products.
    fn compute(&self, bra: &ShellPair, ket: &ShellPair, scratch: &mut Scratch) {
        let coulomb = &self.coulomb[bra.degree + ket.degree];
        let sums = &self.sums[bra.degree][ket.degree];
        let (height, width) = (bra.functions(), ket.functions());
        let Scratch {
            derivatives,
            half,
            block,
        } = scratch;
        derivatives.resize(triple_count(bra.degree + ket.degree), 0.0);
        block.clear();
        block.resize(height * width, 0.0);
        for one in &bra.primitives {
            half.clear();
            half.resize(triple_count(bra.degree) * width, 0.0);
            for two in &ket.primitives {
                if one.bound * two.bound < NEGLIGIBLE_PRIMITIVE {
                    break;
                }
                let (p, q) = (one.exponent, two.exponent);
                let r = std::array::from_fn(|x| one.center[x] - two.center[x]);
                let scale = (p + q).sqrt().recip();
                coulomb.fill(p * q / (p + q), r, scale, derivatives);
                interact(half, width, derivatives, sums, &two.turned);
            }
            for (row, half) in one
                .matrix
                .chunks_exact(height)
                .zip(half.chunks_exact(width))
            {
                for (factor, out) in row.iter().zip(block.chunks_exact_mut(width)) {
                    if *factor != 0.0 {
                        add_scaled(out, *factor, half);
                    }
                }
            }
        }
    }
}

/// half[h, cd] += Σ_k R[h + k] E[k, cd]
#[inline]
fn interact(half: &mut [f64], width: usize, r: &[f64], sums: &[u16], matrix: &[f64]) {
    let depth = matrix.len() / width;
    for (out, places) in half.chunks_exact_mut(width).zip(sums.chunks_exact(depth)) {
        for (place, row) in places.iter().zip(matrix.chunks_exact(width)) {
            add_scaled(out, r[usize::from(*place)], row);
        }
    }
}

#[inline]
fn add_scaled(out: &mut [f64], factor: f64, row: &[f64]) {
    for (sum, x) in out.iter_mut().zip(row) {
        *sum += factor * x;
    }
}

/// The places of the sums of the triples of two degrees.
fn sums(bra: usize, ket: usize) -> Vec<u16> {
    let kets = triples(ket);
    triples(bra)
        .iter()
        .flat_map(|h| {
            kets.iter().map(|k| {
                // At most 2925 triples, those of degree 24.
                triple_index(std::array::from_fn(|x| h[x] + k[x])) as u16
            })
        })
        .collect()
}

/// Copies the integrals that belong to the job's rows; `strides` lead from product to product of bra and ket.
fn store(rows: &mut [Row], bra: &ShellPair, ket: &ShellPair, block: &[f64], strides: [usize; 2]) {
    for row in rows {
        let ab = (row.i - bra.first.start) * bra.second.functions + row.j - bra.second.start;
        for c in 0..ket.first.functions {
            let k = ket.first.start + c;
            for d in 0..ket.second.functions {
                let l = ket.second.start + d;
                if l > k || triangle(k, l) >= row.values.len() {
                    break;
                }
                let cd = c * ket.second.functions + d;
                row.values[triangle(k, l)] = block[ab * strides[0] + cd * strides[1]];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NEGLIGIBLE, NEGLIGIBLE_PRIMITIVE};
    use crate::integrals::pairs::NEGLIGIBLE_PAIR;

    /// Changing any of these changes the last digits of integrals in users' stores.
    #[test]
    fn what_is_left_out_belongs_to_a_version() {
        assert_eq!(
            [NEGLIGIBLE, NEGLIGIBLE_PRIMITIVE, NEGLIGIBLE_PAIR],
            [1e-13, 1e-20, 1e-21],
            "raise the version of `ElectronRepulsion` and then change this test"
        );
    }
}
