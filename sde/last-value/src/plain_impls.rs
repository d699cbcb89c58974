//! [`Plain`] for the types of the language.

use super::Plain;

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Plain for $type {
            const BYTES: usize = size_of::<$type>();

            #[inline(always)]
            fn write(&self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_ne_bytes());
            }

            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$type>()];
                own.copy_from_slice(bytes);
                Self::from_ne_bytes(own)
            }
        }
    )*};
}

number!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64
);

impl Plain for bool {
    const BYTES: usize = 1;

    #[inline(always)]
    fn write(&self, out: &mut [u8]) {
        u8::from(*self).write(out);
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        u8::read(bytes) != 0
    }
}

impl Plain for char {
    const BYTES: usize = 4;

    #[inline(always)]
    fn write(&self, out: &mut [u8]) {
        u32::from(*self).write(out);
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        // All bytes here come from `write`, so the replacement is never used.
        char::from_u32(u32::read(bytes)).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// One byte that says whether there is a value, then the value or zeros.
impl<T: Plain> Plain for Option<T> {
    const BYTES: usize = 1 + T::BYTES;

    #[inline(always)]
    fn write(&self, out: &mut [u8]) {
        let (flag, rest) = out.split_at_mut(1);
        self.is_some().write(flag);
        if let Some(value) = self {
            value.write(rest);
        }
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        let (flag, rest) = bytes.split_at(1);
        bool::read(flag).then(|| T::read(rest))
    }
}

impl<T: Plain, const N: usize> Plain for [T; N] {
    const BYTES: usize = T::BYTES * N;

    #[inline(always)]
    fn write(&self, out: &mut [u8]) {
        for (index, element) in self.iter().enumerate() {
            element.write(&mut out[index * T::BYTES..][..T::BYTES]);
        }
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        std::array::from_fn(|index| T::read(&bytes[index * T::BYTES..][..T::BYTES]))
    }
}

macro_rules! tuple {
    ($($name:ident),*) => {
        impl<$($name: Plain),*> Plain for ($($name,)*) {
            const BYTES: usize = 0 $(+ $name::BYTES)*;

            #[inline(always)]
            #[allow(non_snake_case, unused_variables, reason = "one macro for all lengths")]
            fn write(&self, out: &mut [u8]) {
                let ($($name,)*) = self;
                let rest = out;
                $(
                    let (own, rest) = rest.split_at_mut(<$name as Plain>::BYTES);
                    $name.write(own);
                )*
            }

            #[inline(always)]
            #[allow(non_snake_case, unused_variables, clippy::unused_unit, reason = "one macro for all lengths")]
            fn read(bytes: &[u8]) -> Self {
                let rest = bytes;
                $(
                    let (own, rest) = rest.split_at(<$name as Plain>::BYTES);
                    let $name = <$name as Plain>::read(own);
                )*
                ($($name,)*)
            }
        }
    };
}

tuple!();
tuple!(A);
tuple!(A, B);
tuple!(A, B, C);
tuple!(A, B, C, D);
tuple!(A, B, C, D, E);
tuple!(A, B, C, D, E, F);
tuple!(A, B, C, D, E, F, G);
tuple!(A, B, C, D, E, F, G, H);
