//! Several results with names and tags: each field is one.

#[derive(sde::Results)]
struct Power {
    /// The largest eigenvalue.
    value: f64,
    /// Its eigenvector; saved by checkpoints, left out of archives.
    #[result(intermediate)]
    vector: Vec<f64>,
    /// Never saved, so a later program may be without it.
    #[result(expendable)]
    norms: Vec<f64>,
}

#[sde::app(results)]
fn power_iteration(matrix: &[Vec<f64>], steps: u32) -> Power {
    let (mut vector, mut norms) = (vec![1.0; matrix.len()], Vec::new());
    for _ in 0..steps {
        let dot = |row: &Vec<f64>| row.iter().zip(&vector).map(|(a, b)| a * b).sum();
        let next: Vec<f64> = matrix.iter().map(dot).collect();
        let norm = next.iter().map(|x| x * x).sum::<f64>().sqrt();
        vector = next.iter().map(|x| x / norm).collect();
        norms.push(norm);
    }
    Power {
        value: norms[norms.len() - 1],
        vector,
        norms,
    }
}

fn main() -> Result<(), sde::Error> {
    let sde = sde::open("results.sde")?;
    let matrix = [
        vec![2.0, 1.0, 0.0],
        vec![1.0, 2.0, 1.0],
        vec![0.0, 1.0, 2.0],
    ];
    let found = power_iteration.call(&sde, &matrix, 100)?;
    println!("{:.6} {:.3?}", *found.value, *found.vector);
    println!("{} computed", sde.stats().total.computed);
    sde.finish()
}
