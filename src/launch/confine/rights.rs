//! Kinds of access, as Landlock's rights.

use std::os::fd::AsFd;

use landlock::{ABI, Access as _, AccessFs, BitFlags, make_bitflags};
use nix::sys::stat::{SFlag, fstat};

use super::ConfineError;
use crate::launch::spec::{Access, Grant, Target};

/// Rights of [`Access::read`].
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

/// Rights of [`Access::write`]. Device nodes are never made. A socket may be; where the tier has no local
/// sockets, the filter refuses them.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | Truncate | Refer
        | MakeReg | MakeDir | MakeSym | MakeFifo | MakeSock
        | RemoveFile | RemoveDir
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

/// The right to connect to sockets that others listen on, which comes with writing in the workspace and
/// in `TMPDIR` only: beneath another path, such as a cache, may be sockets of anybody. To those that are
/// made inside the session it can connect anyway, wherever they are.
const SOCKETS: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ResolveUnix});

/// The rights that a grant gives on its target.
pub(super) fn rights(
    target: impl AsFd,
    grant: &Grant,
    abi: ABI,
) -> Result<BitFlags<AccessFs>, ConfineError> {
    let sockets = match grant.target {
        Target::Descriptor(..) if grant.access.write => SOCKETS,
        Target::Descriptor(..) | Target::Path(_) | Target::OwnTerminal => BitFlags::EMPTY,
    };
    known(target, kinds(grant.access) | sockets, abi)
}

/// The rights to what the session has of its own. None of others' sockets comes with them: whatever is
/// mounted beneath, Landlock takes for a part of it.
pub(super) fn own_rights(
    target: impl AsFd,
    access: Access,
    abi: ABI,
) -> Result<BitFlags<AccessFs>, ConfineError> {
    known(target, kinds(access), abi)
}

fn kinds(access: Access) -> BitFlags<AccessFs> {
    let Access { read, write, execute, device } = access;
    let kinds = [(read, READ), (write, WRITE), (execute, EXECUTE), (device, DEVICE)];
    let granted = kinds.into_iter().filter_map(|(granted, kind)| granted.then_some(kind));
    granted.fold(BitFlags::EMPTY, |all, kind| all | kind)
}

/// Those of some rights that this ABI knows, and of them on anything but a directory only those that a
/// file can have (landlock(7) refuses a rule with others).
fn known(
    target: impl AsFd,
    rights: BitFlags<AccessFs>,
    abi: ABI,
) -> Result<BitFlags<AccessFs>, ConfineError> {
    let stat = fstat(target).map_err(|errno| ConfineError::Stat { source: errno.into() })?;
    let is_directory = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
    let known = if is_directory { handled(abi) } else { AccessFs::from_file(abi) };
    Ok(rights & known)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::launch::spec::Slot;

    const ALL: Access = Access { read: true, write: true, execute: true, device: true };

    #[test]
    fn every_right_that_landlock_knows_has_one_place() {
        let places = [READ, WRITE, EXECUTE, DEVICE, SOCKETS, NEVER];
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
        assert_eq!(own_rights(&file, ALL, ABI::V7).unwrap(), expected);
    }

    #[test]
    fn an_older_abi_gets_no_right_that_it_does_not_know() {
        let directory = File::open("/").unwrap();
        for abi in [ABI::V1, ABI::V2, ABI::V4, ABI::V10] {
            let got = own_rights(&directory, ALL, abi).unwrap();
            assert!(handled(abi).contains(got), "{abi:?}");
        }
        let nothing = own_rights(&directory, Access::default(), ABI::V7).unwrap();
        assert!(nothing.is_empty());
    }

    #[test]
    fn sockets_of_others_come_with_the_sessions_directories_only() {
        let directory = File::open("/").unwrap();
        let of = |target, access| {
            rights(&directory, &Grant { target, access, optional: false }, ABI::V10).unwrap()
        };
        let workspace = || Target::Descriptor(Slot::Workspace, "/".into());
        let without = of(Target::Path("/".into()), ALL);
        assert_eq!(of(workspace(), ALL) ^ without, SOCKETS);
        assert_eq!(own_rights(&directory, ALL, ABI::V10).unwrap(), without);
        let read = Access { read: true, ..Access::default() };
        assert_eq!(of(workspace(), read), READ);
    }
}
