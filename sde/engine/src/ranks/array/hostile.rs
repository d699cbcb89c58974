//! Arrays that can't be, as a foreign store or another rank may claim them.

use super::{DistArray, Distributed, SavedParts};

/// What a store or a peer may claim, and no memory can hold: an error, no panic and no abort.
#[test]
fn descriptors_of_impossible_arrays_are_errors() {
    let huge = u64::MAX;
    let lists: [&[u64]; 7] = [
        &[huge, 0, huge],
        &[huge / 2, huge / 2, 0, 0, huge / 2, huge / 2],
        &[3, huge, 3],
        &[3, 1, huge],
        &[huge / 8, 0, huge / 8],
        &[huge, 0, 0],
        &[1 << 58, 0, 1 << 58],
    ];
    let read = |_: usize| -> Result<DistArray<f64>, crate::ArchiveError> {
        panic!("it is not to be read")
    };
    for part_descriptor in lists {
        let descriptors = [part_descriptor.to_vec()];
        let assembled = DistArray::assemble(&SavedParts::new(&descriptors, &read), 0, 1);
        assert!(assembled.is_err(), "{part_descriptor:?}");
    }
    for part_descriptor in &lists[..6] {
        assert!(
            DistArray::<f64>::check(&[part_descriptor.to_vec()]).is_err(),
            "{part_descriptor:?}"
        );
    }
}

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

#[test]
fn an_array_that_no_memory_holds_is_refused() {
    let sde = crate::Sde::new();
    let error = DistArray::from_fn(&sde, &[usize::MAX, 2], |_| 0.0).unwrap_err();
    assert!(
        error.to_string().contains("a layout was refused"),
        "{error}"
    );
}
