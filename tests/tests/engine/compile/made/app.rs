//! A macro that makes an app, for the files beside this folder.

#[macro_export]
macro_rules! made {
    ($name:ident) => {
        #[sde::app(code = file)]
        fn $name(x: f64) -> f64 {
            scale(x)
        }
    };
}
