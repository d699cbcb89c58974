//! The saved form of one rank's part of an array.

use std::sync::Arc;

use sde_engine::bulk::Element;

use super::block::Block;
use super::dist_array::DistArray;
use super::layout::Layout;

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(bound = "")]
struct Shard<T: Element> {
    shape: Vec<usize>,
    block: Block,
    #[serde(with = "sde_engine::bulk")]
    elements: Vec<T>,
}

impl<T: Element> serde::Serialize for DistArray<T> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        #[serde(bound = "", rename = "Shard")]
        struct Borrowed<'a, T: Element> {
            shape: &'a [usize],
            block: Block,
            #[serde(serialize_with = "elements")]
            elements: &'a Vec<T>,
        }
        fn elements<T: Element, S: serde::Serializer>(
            elements: &&Vec<T>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            sde_engine::bulk::serialize(*elements, to)
        }
        Borrowed {
            shape: self.shape(),
            block: self.block(),
            elements: &self.local,
        }
        .serialize(to)
    }
}

/// Reads one rank's part, which lies on no process set: the engine assembles the parts.
impl<'de, T: Element> serde::Deserialize<'de> for DistArray<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let shard = Shard::<T>::deserialize(from)?;
        let size = size_of::<T>();
        if !shard.block.is_in(&shard.shape, size) || shard.block.len() != shard.elements.len() {
            let why = "a part of an array has another number of elements than its block, or lies outside of the array";
            return Err(serde::de::Error::custom(why));
        }
        let layout = Layout::part_of(&shard.shape, shard.block);
        Ok(Self::of(Arc::new(layout), 0, shard.elements, u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_impossible_arrays_are_errors() {
        for part in [
            r#"{"shape":[18446744073709551615,2],"block":{"offset":[0,0],"extent":[1,1]},"elements":[1.0]}"#,
            r#"{"shape":[1],"block":{"offset":[18446744073709551615],"extent":[1]},"elements":[1.0]}"#,
            r#"{"shape":[4],"block":{"offset":[0],"extent":[18446744073709551615]},"elements":[1.0]}"#,
            r#"{"shape":[4,4],"block":{"offset":[0],"extent":[1]},"elements":[1.0]}"#,
        ] {
            assert!(
                serde_json::from_str::<DistArray<f64>>(part).is_err(),
                "{part}"
            );
        }
        let good = r#"{"shape":[4],"block":{"offset":[3],"extent":[1]},"elements":[1.0]}"#;
        assert_eq!(
            serde_json::from_str::<DistArray<f64>>(good)
                .unwrap()
                .local(),
            [1.0]
        );
    }
}
