//! Who a device is, as far as the code made for it is concerned.

use crate::driver::DeviceInfo;

/// Who a device is: two devices of equal identity share binaries, in this process, in another, and
/// on another machine that shares the directory.
///
/// It is what SYCL's cache takes, and the versions of the platform and what the vendor is called.
/// OpenCL has no better name for the instructions of a device; drivers that serve processors of several kinds put
/// the kind into the name or the version, as PoCL does. A binary that is refused
/// all the same is built anew.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, sde::Fingerprint, serde::Serialize, serde::Deserialize,
)]
pub struct DeviceIdentity {
    /// The name of the platform.
    pub platform: String,
    /// The version of the platform.
    pub platform_version: String,
    /// The name of the device.
    pub name: String,
    /// Who made it.
    pub vendor: String,
    /// The version of OpenCL, with what the vendor adds.
    pub version: String,
    /// The version of the driver.
    pub driver: String,
}

impl DeviceIdentity {
    /// Of what a driver says.
    #[must_use]
    pub fn of(info: &DeviceInfo) -> Self {
        Self {
            platform: info.platform.clone(),
            platform_version: info.platform_version.clone(),
            name: info.name.clone(),
            vendor: info.vendor.clone(),
            version: info.version.clone(),
            driver: info.driver.clone(),
        }
    }
}
