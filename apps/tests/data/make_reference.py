"""Computes reference_energies.csv with PySCF and the Basis Set Exchange.

    python -m venv venv && venv/bin/pip install pyscf==2.14.0 basis_set_exchange==0.12
    venv/bin/python make_reference.py

The molecules are the XYZ files of the folder molecules/. Each calculation is converged to
1e-12 hartree by a second-order method and followed along its internal instabilities to a minimum, so that the table
holds the lowest restricted solution that could be found from PySCF's default guess. Dipole
moments are about the origin of coordinates.
"""

import csv
import pathlib

import basis_set_exchange as bse
import numpy as np
from pyscf import gto, scf

HERE = pathlib.Path(__file__).parent
CHARGES = {"hydroxide": -1, "chloride": -1, "ammonium": 1, "hydronium": 1, "cyanide": -1}

SMALL = [
    "water", "hydroxide", "ammonium", "hydrogen_sulfide", "hydrogen_chloride", "silane",
    "phosphine", "chloride", "nitrogen", "carbon_monoxide", "formaldehyde", "lithium_hydride",
    "hydronium", "cyanide",
]
CASES = [(m, b, "published") for m in SMALL for b in ["STO-3G", "3-21G", "6-31G", "6-31G*", "cc-pVDZ"]]
CASES += [(m, "6-31G*", "spherical") for m in SMALL]
CASES += [(m, "cc-pVDZ", "cartesian") for m in ["water", "hydrogen_sulfide", "chloride", "ammonium"]]
CASES += [
    ("water", "STO-6G", "published"),
    ("water", "6-31G**", "published"),
    ("water", "6-31++G**", "published"),
    ("water", "6-311G**", "published"),
    ("water", "6-311++G**", "published"),
    ("water", "aug-cc-pVDZ", "published"),
    ("water", "cc-pVTZ", "published"),
    ("water", "cc-pVTZ", "cartesian"),
    ("water", "def2-SVP", "published"),
    ("water", "def2-TZVP", "published"),
    ("hydroxide", "6-31+G*", "published"),
    ("hydroxide", "aug-cc-pVDZ", "published"),
    ("silane", "def2-SVP", "published"),
    ("hydrogen_sulfide", "6-311G**", "published"),
    ("sodium_chloride", "6-31G*", "published"),
    ("sodium_chloride", "def2-SVP", "published"),
    ("sulfur_dioxide", "6-31G*", "published"),
    ("hydrogen_bromide", "6-31G*", "published"),
    ("hydrogen_bromide", "def2-SVP", "published"),
    ("zinc_hydride", "6-31G*", "spherical"),
    ("zinc_hydride", "def2-SVP", "published"),
    ("benzene", "STO-3G", "published"),
    ("benzene", "6-31G*", "published"),
    ("benzene", "cc-pVDZ", "published"),
]
# With what the set was published: six Cartesian d functions, or five spherical ones.
CARTESIAN_SETS = {"3-21G", "6-31G", "6-31G*", "6-31G**", "6-31+G*", "6-31++G**"}


def basis_for(name, symbols):
    return {
        symbol: gto.parse(bse.get_basis(name, elements=[symbol], fmt="nwchem"), symbol)
        for symbol in set(symbols)
    }


def compute(molecule, name, harmonics):
    lines = (HERE / "molecules" / f"{molecule}.xyz").read_text().splitlines()[2:]
    cartesian = name in CARTESIAN_SETS if harmonics == "published" else harmonics == "cartesian"
    mol = gto.M(
        atom="\n".join(lines),
        basis=basis_for(name, [line.split()[0] for line in lines]),
        charge=CHARGES.get(molecule, 0),
        cart=cartesian,
        verbose=0,
    )
    mf = scf.RHF(mol)
    mf.conv_tol = 1e-12
    mf.conv_tol_grad = 1e-7
    mf.max_cycle = 200
    mf.kernel()
    mf = mf.newton()
    mf.conv_tol = 1e-12
    mf.kernel(mf.mo_coeff, mf.mo_occ)
    for _ in range(5 if mf.mo_occ.min() == 0 else 0):  # no instability without empty orbitals
        orbitals, _, stable, _ = mf.stability(return_status=True)
        if stable:
            break
        mf.kernel(orbitals, mf.mo_occ)
    assert mf.converged, (molecule, name)
    with mol.with_common_orig((0, 0, 0)):
        dipole = np.linalg.norm(mf.dip_moment(unit="AU", verbose=0))
    return mol.nao, mf.e_tot, dipole


with open(HERE / "reference_energies.csv", "w", newline="") as file:
    table = csv.writer(file, lineterminator="\n")
    table.writerow(["molecule", "charge", "basis", "harmonics", "functions", "energy_hartree", "dipole_au"])
    for molecule, name, harmonics in CASES:
        functions, energy, dipole = compute(molecule, name, harmonics)
        row = [molecule, CHARGES.get(molecule, 0), name, harmonics, functions, f"{energy:.10f}", f"{dipole:.8f}"]
        table.writerow(row)
        print(*row, flush=True)
