//! The energies of molecules by xtb, a program that others wrote: each is computed once.

use sde::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let sde = sde::open("molecules.sde")?;
    let xtb = Command::new("xtb")
        .args(["mol.xyz", "--opt"])
        .env("OMP_NUM_THREADS", "1");
    let xtb = xtb
        .require("normal termination")
        .get("energy", r"TOTAL ENERGY +(\S+)");
    let runs = sde.par_each(&files, |sde, file| {
        xtb.clone().input("mol.xyz", file).run(sde)
    });
    for (file, run) in files.iter().zip(runs) {
        match run {
            Ok(run) => println!(
                "{file}: {:.6} hartree",
                run.number("energy").unwrap_or(f64::NAN)
            ),
            Err(error) => println!("{file}: {error}"),
        }
    }
    Ok(sde.finish()?)
}
