//! What is not enforced, in one line each.

use serde::{
    Deserialize,
    de::{IntoDeserializer, value::StrDeserializer},
};

use crate::launch::report::Gap;

/// What a word in `gaps` means; nothing for one that this version does not know.
pub(super) fn meaning(word: &str) -> &'static str {
    let deserializer: StrDeserializer<'_, serde::de::value::Error> = word.into_deserializer();
    Gap::deserialize(deserializer).map_or("", of)
}

fn of(gap: Gap) -> &'static str {
    match gap {
        Gap::MetadataOutside => "mode and times of files outside can be changed, sizes be seen",
        Gap::GitHooks => "what it leaves in .git/hooks and .git/config runs later, outside",
        Gap::WorkspaceCode => "what it leaves in the workspace may run later, outside",
        Gap::OutsideCode => "what it leaves in other writable directories may run later, outside",
        Gap::GrantedSockets => "who serves a granted socket does for it what it does for you",
        Gap::NoUserNamespace => "user namespaces are forbidden here: a lesser tier is in force",
        Gap::DiskSpace => "nothing bounds how much it writes",
        Gap::ProcessesVisible => "command lines of other processes can be read",
        Gap::UdpOpen => "UDP is open",
        Gap::TcpOpen => "TCP is open to every port",
        Gap::Audit => "what it is refused is not in the audit log",
        Gap::SignalsOutside => "processes outside can be signalled",
        Gap::DeviceIoctl => "ioctl is open on device files that it can open",
        Gap::TruncateOutside => "files outside can be truncated",
        Gap::NoScope => "there is no scope: systemctl does not see it",
        Gap::NoCgroup => "its processes are found by descent, and cannot be paused",
        Gap::NoResourceLimits => "memory_max and tasks_max are not enforced",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_explained_where_it_is_known() {
        assert_eq!(meaning(Gap::UdpOpen.as_str()), "UDP is open");
        assert_eq!(meaning(Gap::GrantedSockets.as_str()), of(Gap::GrantedSockets));
        assert_eq!(meaning("of-tomorrow"), "");
    }
}
