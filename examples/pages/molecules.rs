//! The energies of molecules by xtb, a program that others wrote: each is computed once.

use sde::{Command, Handle};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let sde = sde::open("molecules.sde")?;
    let xtb = Command::new("xtb").args(["mol.xyz", "--opt"]);
    let xtb = xtb.get("energy", r"TOTAL ENERGY +(\S+)");
    let run = |sde: &Handle, file: &String| xtb.clone().input("mol.xyz", file).run(sde);
    for (file, run) in files.iter().zip(sde.par_each(&files, run)) {
        match run.map(|run| run.number("energy")) {
            Ok(energy) => println!("{file}: {energy:?} hartree"),
            Err(error) => println!("{file}: {error}"),
        }
    }
    Ok(sde.finish()?)
}
