"""Writes the basis set files of this folder with the Basis Set Exchange.

    python -m venv venv && venv/bin/pip install basis_set_exchange==0.12
    venv/bin/python make.py

One file a set, in NWChem's format, hydrogen to krypton as far as the set goes.
"""

import pathlib

import basis_set_exchange as bse

NAMES = [
    "STO-3G", "STO-6G", "3-21G",
    "6-31G", "6-31G*", "6-31G**", "6-31+G*", "6-31++G**",
    "6-311G", "6-311G**", "6-311++G**",
    "cc-pVDZ", "cc-pVTZ", "aug-cc-pVDZ",
    "def2-SVP", "def2-TZVP",
]

here = pathlib.Path(__file__).parent
for name in NAMES:
    have = bse.get_basis(name)["elements"]
    elements = [z for z in range(1, 37) if str(z) in have]
    text = bse.get_basis(name, elements=elements, fmt="nwchem")
    lines = [line.rstrip() for line in text.splitlines()]
    file = name.lower().replace("*", "s") + ".nw"
    (here / file).write_text("\n".join(lines).strip() + "\n")
    print(file, bse.get_basis(name)["version"], len(elements), "elements")
