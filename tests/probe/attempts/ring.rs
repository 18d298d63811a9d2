//! As much of io_uring(7) as makes one socket.

use std::{
    io::{self, Error},
    os::fd::{AsRawFd, OwnedFd},
    ptr,
};

use libc::{c_int, c_void};

use super::{check, descriptor};

/// `struct io_uring_params` of linux/io_uring.h, as words.
type Parameters = [u32; 30];

/// Where in the parameters the offsets begin of what each ring holds.
const SUBMISSION: usize = 10;
const COMPLETION: usize = 20;

/// `IORING_OP_SOCKET`, `IORING_ENTER_GETEVENTS`.
const MAKE_SOCKET: u8 = 45;
const GET_EVENTS: u32 = 1;

/// `IORING_OFF_SQ_RING`, `IORING_OFF_SQES`; the completions lie in the first since Linux 5.4.
const RINGS: i64 = 0;
const ENTRIES: i64 = 0x1000_0000;

/// `struct io_uring_sqe`, as far as a socket needs it.
#[repr(C)]
#[derive(Default)]
struct Entry {
    operation: u8,
    flags: u8,
    priority: u16,
    family: c_int,
    kind: u64,
    address: u64,
    protocol: u32,
    rest: [u32; 9],
}

/// Makes a socket without calling socket(2).
pub fn socket(family: c_int, kind: c_int) -> io::Result<OwnedFd> {
    let mut parameters: Parameters = [0; 30];
    // SAFETY: the call fills in the parameters that it is given.
    let ring =
        descriptor(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) })?;
    let (rings, entries) = (map(&ring, RINGS)?, map(&ring, ENTRIES)?);
    let kind = u64::try_from(kind).expect("a small number");
    let entry = Entry { operation: MAKE_SOCKET, family, kind, ..Entry::default() };
    let offset = |place: usize| parameters[place] as usize;
    // SAFETY: the kernel said where things lie, and nobody else touches this ring.
    unsafe {
        entries.cast::<Entry>().write(entry);
        rings.byte_add(offset(SUBMISSION + 6)).cast::<u32>().write(0);
        rings.byte_add(offset(SUBMISSION + 1)).cast::<u32>().write_volatile(1);
    }
    // SAFETY: no signal mask is given.
    let entered = unsafe {
        let ring = ring.as_raw_fd();
        libc::syscall(libc::SYS_io_uring_enter, ring, 1, 1, GET_EVENTS, ptr::null::<c_void>(), 0)
    };
    check(c_int::try_from(entered).unwrap_or(-1))?;
    // SAFETY: one completion is there: eight bytes of ours, then the result.
    let made =
        unsafe { rings.byte_add(offset(COMPLETION + 5) + 8).cast::<c_int>().read_volatile() };
    if made < 0 { Err(Error::from_raw_os_error(-made)) } else { descriptor(made.into()) }
}

/// Maps a page of a ring, which holds all of one with a single entry.
fn map(ring: &OwnedFd, offset: i64) -> io::Result<*mut c_void> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping, wherever the kernel has room.
    let at = unsafe { libc::mmap(ptr::null_mut(), 4096, access, flags, ring.as_raw_fd(), offset) };
    if at == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(at) }
}
