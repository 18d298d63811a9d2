use super::*;

#[test]
fn a_key_is_found_whole() {
    let events = b"populated 1\nfrozen 0\n";
    assert_eq!(flat_value(events, "populated"), Some(1));
    assert_eq!(flat_value(events, "frozen"), Some(0));
    assert_eq!(flat_value(events, "pop"), None);
    assert_eq!(flat_value(b"usage_usec many\n", "usage_usec"), None);
}

#[test]
fn our_own_control_group_is_named() {
    let name = name_of(std::process::id().cast_signed()).unwrap();
    assert!(name.is_absolute());
    assert_eq!(name_of(i32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
}
