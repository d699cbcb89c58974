//! The cells of many rows in one stretch of memory, as there may be millions of rows.
//!
//! Rows mostly are of one kind, with the same columns and values of the same types. These are kept once, as a shape, and
//! of a row only the number of its shape and its values.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::rc::Rc;

use sde::key::Bare;

use crate::columns::{Cell, Cells};

/// Where the cells of a row are.
#[derive(Debug, Clone, Copy)]
pub struct PackedRow(u64);

/// What rows have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shape<K> {
    kind: K,
    /// The columns, each with the type of its value.
    columns: Rc<[(u32, Type)]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Type {
    Bool,
    Unsigned,
    Signed,
    F32,
    F64,
    Text,
}

/// The cells of rows, each of a kind `K`.
#[derive(Debug)]
pub struct Packed<K> {
    bytes: Vec<u8>,
    shapes: Vec<Shape<K>>,
    known: HashMap<Shape<K>, u64>,
}

impl<K> Default for Packed<K> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            shapes: Vec::new(),
            known: HashMap::new(),
        }
    }
}

impl<K: Copy + Eq + Hash> Packed<K> {
    /// Keeps the cells of a row.
    pub fn keep(&mut self, kind: K, cells: &[(u32, Cell)]) -> PackedRow {
        let at = self.bytes.len() as u64;
        let types = cells.iter();
        let columns = types.map(|(column, cell)| (*column, type_of(&cell.bare())));
        let columns = columns.collect();
        let shape = self.number(Shape { kind, columns });
        put(&mut self.bytes, shape);
        for (_, cell) in cells {
            match cell.bare() {
                Bare::Bool(truth) => self.bytes.push(truth.into()),
                Bare::Unsigned(integer) => put(&mut self.bytes, integer),
                Bare::Signed(integer) => self.bytes.extend(integer.to_le_bytes()),
                Bare::F32(number) => self.bytes.extend(number.to_le_bytes()),
                Bare::F64(number) => self.bytes.extend(number.to_le_bytes()),
                Bare::Text(text) => {
                    put(&mut self.bytes, text.len() as u64);
                    self.bytes.extend(text.as_bytes());
                }
                _ => put(&mut self.bytes, 0),
            }
        }
        PackedRow(at)
    }

    fn number(&mut self, shape: Shape<K>) -> u64 {
        if let Some(known) = self.known.get(&shape) {
            return *known;
        }
        let number = self.shapes.len() as u64;
        self.shapes.push(shape.clone());
        self.known.insert(shape, number);
        number
    }

    /// Keeps other cells of a row.
    pub fn replace(&mut self, row: PackedRow, cells: &[(u32, Cell)]) -> PackedRow {
        self.keep(self.kind(row), cells)
    }

    /// What was kept with the cells of a row.
    pub fn kind(&self, row: PackedRow) -> K {
        self.read(row).0.kind
    }

    pub fn cells(&self, row: PackedRow) -> Cells {
        let (shape, mut values) = self.read(row);
        let cells = shape.columns.iter();
        cells
            .map(|(column, of)| (*column, values.cell(*of)))
            .collect()
    }

    /// The first cell in a column.
    pub fn cell(&self, row: PackedRow, column: u32) -> Option<Cell> {
        let (shape, mut values) = self.read(row);
        for (own, of) in shape.columns.iter() {
            if *own == column {
                return Some(values.cell(*of));
            }
            values.skip(*of);
        }
        None
    }

    /// The columns that some of these rows have.
    pub fn columns(&self, rows: impl Iterator<Item = PackedRow>) -> BTreeSet<u32> {
        let columns = self.shapes_of(rows).flat_map(|shape| shape.columns.iter());
        columns.map(|(column, _)| *column).collect()
    }

    /// The kinds of these rows; one may come several times.
    pub fn kinds(&self, rows: impl Iterator<Item = PackedRow>) -> impl Iterator<Item = K> {
        self.shapes_of(rows).map(|shape| shape.kind)
    }

    fn shapes_of(&self, rows: impl Iterator<Item = PackedRow>) -> impl Iterator<Item = &Shape<K>> {
        let shapes: BTreeSet<u64> = rows.map(|row| Values::of(self, row).integer()).collect();
        let shapes = shapes.into_iter();
        shapes.map(|shape| &self.shapes[shape as usize])
    }

    fn read(&self, row: PackedRow) -> (&Shape<K>, Values<'_>) {
        let mut values = Values::of(self, row);
        let shape = values.integer() as usize;
        (&self.shapes[shape], values)
    }
}

const fn type_of(value: &Bare<'_>) -> Type {
    match value {
        Bare::Bool(_) => Type::Bool,
        Bare::Unsigned(_) => Type::Unsigned,
        Bare::Signed(_) => Type::Signed,
        Bare::F32(_) => Type::F32,
        Bare::F64(_) => Type::F64,
        _ => Type::Text,
    }
}

/// Adds an integer: seven bits in each byte, the highest bit tells that more follow.
fn put(to: &mut Vec<u8>, mut integer: u64) {
    while integer >= 0x80 {
        to.push(integer as u8 | 0x80);
        integer >>= 7;
    }
    to.push(integer as u8);
}

/// Reads what was kept of a row.
#[derive(Debug)]
struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    fn of<K>(packed: &'a Packed<K>, row: PackedRow) -> Self {
        Self(&packed.bytes[row.0 as usize..])
    }

    fn cell(&mut self, of: Type) -> Cell {
        match of {
            Type::Bool => Cell::Bool(self.take(1) == [1]),
            Type::Unsigned => Cell::U64(self.integer()),
            Type::Signed => Cell::I64(i64::from_le_bytes(self.array())),
            Type::F32 => Cell::F32(f32::from_le_bytes(self.array())),
            Type::F64 => Cell::F64(f64::from_le_bytes(self.array())),
            Type::Text => {
                let length = self.integer() as usize;
                Cell::Text(String::from_utf8_lossy(self.take(length)).into())
            }
        }
    }

    fn skip(&mut self, of: Type) {
        let length = match of {
            Type::Bool => 1,
            Type::Unsigned => {
                self.integer();
                0
            }
            Type::Signed | Type::F64 => 8,
            Type::F32 => 4,
            Type::Text => self.integer() as usize,
        };
        self.take(length);
    }

    fn integer(&mut self) -> u64 {
        let mut integer = 0;
        for shift in (0..).step_by(7) {
            let byte = self.array::<1>()[0];
            integer |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        integer
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N));
        array
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, left) = self.0.split_at(length);
        self.0 = left;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back_as_they_were_kept() {
        let text = |text: &str| Cell::Text(text.into());
        let rows: [Cells; 5] = [
            vec![(7, Cell::U64(0)), (2, text("")), (3, Cell::Bool(true))],
            vec![],
            vec![
                (7, Cell::U64(u64::MAX)),
                (2, text("é\0")),
                (3, Cell::Bool(false)),
            ],
            vec![
                (1, Cell::I64(i64::MIN)),
                (4, Cell::F32(-0.0)),
                (5, Cell::F64(f64::NAN)),
            ],
            vec![
                (7, text("a text in place of a number")),
                (7, Cell::U64(300)),
            ],
        ];
        let mut packed = Packed::default();
        let kept: Vec<PackedRow> = rows.iter().map(|row| packed.keep(row.len(), row)).collect();
        let shown = |cells: &Cells| format!("{cells:?}");
        for (row, at) in rows.iter().zip(&kept) {
            assert_eq!(shown(&packed.cells(*at)), shown(row));
            for (column, _) in row {
                let first = row.iter().find(|(own, _)| own == column);
                let found = packed.cell(*at, *column);
                assert_eq!(
                    format!("{found:?}"),
                    format!("{:?}", first.map(|(_, cell)| cell))
                );
            }
            assert!(packed.cell(*at, 99).is_none());
        }
        let columns = packed.columns(kept.iter().copied());
        assert_eq!(columns.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 7]);
        let more = packed.replace(kept[0], &[(9, Cell::F64(0.5))]);
        assert_eq!((packed.kind(more), packed.cells(more).len()), (3, 1));
        assert_eq!(packed.cells(kept[0]).len(), 3);
        assert_eq!(
            packed.kinds(kept.into_iter()).collect::<BTreeSet<_>>(),
            BTreeSet::from([0, 2, 3])
        );
    }
}
