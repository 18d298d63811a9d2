//! What programs share without files: System V objects, POSIX queues, keys.

use std::{
    ffi::CString,
    io::{self, Error},
};

use libc::{c_int, c_long};

use super::{check, number};

/// `KEY_SPEC_USER_KEYRING`, `KEYCTL_SEARCH` and `KEYCTL_READ` of keyctl(2).
const USER_KEYRING: c_long = -4;
const SEARCH: c_long = 10;
const READ: c_long = 11;

pub fn run(name: &str, arguments: &[&str]) -> Option<io::Result<()>> {
    let [object] = arguments else { return None };
    let id = || c_int::try_from(number(object)).expect("an id");
    let text = || CString::new(*object).expect("a name");
    Some(match name {
        "write-segment" => write_segment(id()),
        "send-message" => send_message(id()),
        "raise-semaphore" => raise_semaphore(id()),
        "send-to-queue" => send_to_queue(&text()),
        "add-key" => add_key(&text()),
        "read-key" => read_key(&text()),
        _ => return None,
    })
}

fn write_segment(id: c_int) -> io::Result<()> {
    // SAFETY: a new mapping, wherever the kernel has room.
    let at = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    if at.addr() == usize::MAX {
        return Err(Error::last_os_error());
    }
    // SAFETY: a segment has a page at least.
    unsafe { at.cast::<u8>().write_volatile(b'x') };
    Ok(())
}

fn send_message(id: c_int) -> io::Result<()> {
    let message: [c_long; 2] = [1, 0];
    // SAFETY: a type, then as many bytes as are said.
    check(unsafe { libc::msgsnd(id, message.as_ptr().cast(), 1, libc::IPC_NOWAIT) })
}

fn raise_semaphore(id: c_int) -> io::Result<()> {
    let mut operation = libc::sembuf { sem_num: 0, sem_op: 1, sem_flg: 0 };
    // SAFETY: one operation.
    check(unsafe { libc::semop(id, &raw mut operation, 1) })
}

fn send_to_queue(name: &CString) -> io::Result<()> {
    // SAFETY: the name ends with NUL.
    let queue = unsafe { libc::mq_open(name.as_ptr(), libc::O_WRONLY) };
    check(queue)?;
    // SAFETY: one byte is read.
    check(unsafe { libc::mq_send(queue, c"x".as_ptr(), 1, 0) })
}

fn add_key(name: &CString) -> io::Result<()> {
    let (kind, value) = (c"user".as_ptr(), c"x".as_ptr());
    // SAFETY: names end with NUL; one byte is read.
    let key =
        unsafe { libc::syscall(libc::SYS_add_key, kind, name.as_ptr(), value, 1, USER_KEYRING) };
    check(c_int::try_from(key).unwrap_or(-1))
}

fn read_key(name: &CString) -> io::Result<()> {
    let kind = c"user".as_ptr();
    // SAFETY: names end with NUL.
    let key =
        unsafe { libc::syscall(libc::SYS_keyctl, SEARCH, USER_KEYRING, kind, name.as_ptr(), 0) };
    check(c_int::try_from(key).unwrap_or(-1))?;
    let mut value = [0_u8; 16];
    // SAFETY: at most 16 bytes are written.
    let length = unsafe { libc::syscall(libc::SYS_keyctl, READ, key, value.as_mut_ptr(), 16) };
    check(c_int::try_from(length).unwrap_or(-1))
}
