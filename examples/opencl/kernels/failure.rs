//! What went wrong.

/// For a person, with the exit status: 1 if the calculation failed, 2 if what was asked for makes no sense.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub status: u8,
}

impl Failure {
    pub fn of_input(message: impl std::fmt::Display) -> Self {
        Self {
            message: format!("{message:#}"),
            status: 2,
        }
    }

    /// Of another process, which has told.
    pub fn told(status: u8) -> Self {
        Self {
            message: String::new(),
            status,
        }
    }

    pub fn of_calculation(message: impl std::fmt::Display) -> Self {
        Self {
            message: format!("{message:#}"),
            status: 1,
        }
    }
}

impl From<sde::Error> for Failure {
    fn from(error: sde::Error) -> Self {
        Self::of_calculation(error)
    }
}

impl From<sde::opencl::Error> for Failure {
    /// On a machine without OpenCL it says how to get one.
    fn from(error: sde::opencl::Error) -> Self {
        match &error {
            sde::opencl::Error::NoOpenCl { .. } => Self::of_calculation(format!(
                "{error}. On Debian and Ubuntu `apt install pocl-opencl-icd ocl-icd-libopencl1` makes a \
                 device of the processor"
            )),
            _ => Self::of_calculation(error),
        }
    }
}
