//! Matrix products on a device.

#![allow(unsafe_code, reason = "a launch")]

use sde::opencl::Kernel;
use sde::{AppError, Handle};
use sde_apps::matrix::Matrix;

use crate::device::{Argument, Gpu};
use crate::meter::Family;
use crate::repulsion::Real;
use crate::source::{self, Element};

/// The product of two square matrices, each of which may be given as its transpose.
#[sde::app(name = "DeviceProduct", version = "1")]
pub fn device_product(
    sde: &Handle,
    gpu: &Gpu,
    element: Element,
    tile: usize,
    transposed: [bool; 2],
    a: &Matrix,
    b: &Matrix,
) -> Result<Matrix, AppError> {
    let square = [a.rows(), a.columns(), b.rows(), b.columns()];
    if square != [a.rows(); 4] {
        return Err(AppError::message(
            "these matrices are not square, or not alike",
        ));
    }
    let program = source::product(element, tile, transposed);
    let kernels = gpu.kernels(sde, Family::Product, &[program])?;
    match element {
        Element::Float => multiply::<f32>(gpu, &kernels[0], tile, a, b),
        Element::Double => multiply::<f64>(gpu, &kernels[0], tile, a, b),
    }
}

fn multiply<T: Real>(
    gpu: &Gpu,
    kernel: &Kernel,
    tile: usize,
    a: &Matrix,
    b: &Matrix,
) -> Result<Matrix, AppError> {
    let size = a.rows();
    let of = |matrix: &Matrix| {
        let numbers: Vec<T> = matrix.values().iter().map(|x| T::of(*x)).collect();
        gpu.buffer(&numbers)
    };
    let (a, b, out) = (of(a)?, of(b)?, gpu.empty::<T>(size * size)?);
    let int = i32::try_from(size)?;
    let mut arguments = vec![a.argument(), b.argument(), out.argument()];
    arguments.extend([int; 3].map(Argument::Int));
    let global = [size.next_multiple_of(tile); 2];
    // SAFETY: three buffers and three `int`s; items beyond the matrices, whose sizes these are, read and
    // write nothing. The kernel demands this size of groups.
    unsafe { gpu.launch(Family::Product, kernel, &arguments, &global, &[tile; 2]) }
        .map_err(|error| AppError::message(error.to_string()))?;
    let values = gpu.read(&out)?.into_iter().map(T::wide).collect();
    Ok(Matrix::from_values(size, size, values)?)
}
