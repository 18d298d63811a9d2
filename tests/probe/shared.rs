//! Objects that programs of one user share without files, for other probes to attack.

use std::{
    ffi::CString,
    io::{self, Error},
};

use libc::c_int;
use serde_json::{Value, json};

/// `KEY_SPEC_USER_KEYRING`, `KEYCTL_SEARCH` and `KEYCTL_UNLINK` of keyctl(2).
const USER_KEYRING: libc::c_long = -4;
const SEARCH: libc::c_long = 10;
const UNLINK: libc::c_long = 9;

/// The key that is there from the start; the one that an attempt adds has another end.
const ADDED: &str = "-added";

/// `make NAME`, `look NAME MADE` or `remove NAME MADE`.
pub fn run(words: &[&str]) -> Value {
    match words {
        ["make", name] => make(name),
        ["look", name, made] => look(name, &parse(made)),
        ["remove", name, made] => remove(name, &parse(made)),
        _ => panic!("unknown arguments {words:?}"),
    }
}

fn parse(made: &str) -> Value {
    serde_json::from_str(made).expect("what was made")
}

fn make(name: &str) -> Value {
    add_key(name);
    // SAFETY: numbers only, and no attributes means the default ones.
    unsafe {
        let queue = queue(name);
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
        made(libc::mq_open(queue.as_ptr(), flags, 0o600, std::ptr::null::<libc::mq_attr>()));
        json!({
            "segment": made(libc::shmget(libc::IPC_PRIVATE, 4096, 0o600)),
            "messages": made(libc::msgget(libc::IPC_PRIVATE, 0o600)),
            "semaphore": made(libc::semget(libc::IPC_PRIVATE, 1, 0o600)),
        })
    }
}

fn made(result: c_int) -> c_int {
    assert!(result >= 0, "{}", Error::last_os_error());
    result
}

fn queue(name: &str) -> CString {
    CString::new(format!("/{name}")).expect("a name")
}

fn id(made: &Value, kind: &str) -> c_int {
    made[kind].as_i64().and_then(|id| c_int::try_from(id).ok()).expect("an id")
}

/// Which of them is not as it was made.
fn look(name: &str, made: &Value) -> Value {
    // SAFETY: a new mapping; the kernel fills in what it is given; the semaphore's value takes nothing.
    unsafe {
        let segment = libc::shmat(id(made, "segment"), std::ptr::null(), libc::SHM_RDONLY);
        assert_ne!(segment.addr(), usize::MAX, "{}", Error::last_os_error());
        let mut messages: libc::msqid_ds = std::mem::zeroed();
        self::made(libc::msgctl(id(made, "messages"), libc::IPC_STAT, &raw mut messages));
        let semaphore = libc::semctl(id(made, "semaphore"), 0, libc::GETVAL);
        let queue = self::made(libc::mq_open(queue(name).as_ptr(), libc::O_RDONLY));
        let mut waiting: libc::mq_attr = std::mem::zeroed();
        self::made(libc::mq_getattr(queue, &raw mut waiting));
        json!({
            "segment": segment.cast::<u8>().read_volatile() != 0,
            "messages": messages.msg_qnum != 0,
            "semaphore": semaphore != 0,
            "queue": waiting.mq_curmsgs != 0,
            "keys": find_key(&format!("{name}{ADDED}")).is_ok(),
        })
    }
}

fn remove(name: &str, made: &Value) -> Value {
    // SAFETY: removing takes no structure.
    unsafe {
        libc::shmctl(id(made, "segment"), libc::IPC_RMID, std::ptr::null_mut());
        libc::msgctl(id(made, "messages"), libc::IPC_RMID, std::ptr::null_mut());
        libc::semctl(id(made, "semaphore"), 0, libc::IPC_RMID);
        libc::mq_unlink(queue(name).as_ptr());
    }
    for key in [name.to_owned(), format!("{name}{ADDED}")] {
        if let Ok(key) = find_key(&key) {
            // SAFETY: numbers only.
            unsafe { libc::syscall(libc::SYS_keyctl, UNLINK, key, USER_KEYRING) };
        }
    }
    Value::Null
}

fn add_key(name: &str) {
    let name = CString::new(name).expect("a name");
    let (kind, value) = (c"user".as_ptr(), c"treasure".as_ptr());
    // SAFETY: names end with NUL; eight bytes are read.
    let key =
        unsafe { libc::syscall(libc::SYS_add_key, kind, name.as_ptr(), value, 8, USER_KEYRING) };
    made(key.try_into().expect("a key"));
}

fn find_key(name: &str) -> io::Result<libc::c_long> {
    let (kind, name) = (c"user".as_ptr(), CString::new(name).expect("a name"));
    // SAFETY: names end with NUL.
    match unsafe { libc::syscall(libc::SYS_keyctl, SEARCH, USER_KEYRING, kind, name.as_ptr(), 0) } {
        -1 => Err(Error::last_os_error()),
        key => Ok(key),
    }
}
