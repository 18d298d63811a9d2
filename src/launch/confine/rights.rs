//! Kinds of access, as Landlock's rights.

use std::os::fd::AsFd;

use landlock::{ABI, Access as _, AccessFs, BitFlags, make_bitflags};
use nix::sys::stat::{SFlag, fstat};

use super::ConfineError;
use crate::launch::spec::Access;

/// Rights of [`Access::read`].
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

/// Rights of [`Access::write`]. Device nodes are never made. A socket may be, and connected to; where
/// the tier has no local sockets, the filter refuses them.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | Truncate | Refer
        | MakeReg | MakeDir | MakeSym | MakeFifo | MakeSock
        | RemoveFile | RemoveDir | ResolveUnix
});

/// Rights of [`Access::execute`].
const EXECUTE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute});

/// Rights of [`Access::device`].
const DEVICE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{IoctlDev});

/// Rights that no grant gives.
#[cfg(test)]
const NEVER: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeChar | MakeBlock});

/// Every file system right of an ABI: all of them are denied where no grant gives them.
pub(super) fn handled(abi: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_all(abi)
}

/// The rights that a grant gives on its target: those of its kinds that this ABI knows, and of them
/// on anything but a directory only those that a file can have (landlock(7) refuses a rule with
/// others).
pub(super) fn rights(
    target: impl AsFd,
    access: Access,
    abi: ABI,
) -> Result<BitFlags<AccessFs>, ConfineError> {
    let mut rights = BitFlags::EMPTY;
    for (granted, kind) in [
        (access.read, READ),
        (access.write, WRITE),
        (access.execute, EXECUTE),
        (access.device, DEVICE),
    ] {
        if granted {
            rights |= kind;
        }
    }
    let stat = fstat(target).map_err(|errno| ConfineError::Stat { source: errno.into() })?;
    let is_directory = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
    let known = if is_directory { handled(abi) } else { AccessFs::from_file(abi) };
    Ok(rights & known)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const ALL: Access = Access { read: true, write: true, execute: true, device: true };

    #[test]
    fn every_right_that_landlock_knows_has_one_place() {
        let places = [READ, WRITE, EXECUTE, DEVICE, NEVER];
        let union = places.into_iter().fold(BitFlags::EMPTY, |union, place| {
            assert!((union & place).is_empty(), "{place:?} overlaps");
            union | place
        });
        assert_eq!(union, AccessFs::from_all(ABI::V10));
    }

    #[test]
    fn a_file_gets_no_right_of_a_directory() {
        let file = File::open("/dev/null").unwrap();
        let expected = make_bitflags!(AccessFs::{
            ReadFile | WriteFile | Truncate | Execute | IoctlDev
        });
        assert_eq!(rights(&file, ALL, ABI::V7).unwrap(), expected);
    }

    #[test]
    fn an_older_abi_gets_no_right_that_it_does_not_know() {
        let directory = File::open("/").unwrap();
        for abi in [ABI::V1, ABI::V2, ABI::V4, ABI::V10] {
            let got = rights(&directory, ALL, abi).unwrap();
            assert!(handled(abi).contains(got), "{abi:?}");
        }
        let nothing = rights(&directory, Access::default(), ABI::V7).unwrap();
        assert!(nothing.is_empty());
    }
}
