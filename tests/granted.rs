//! What a profile grants beyond files: sockets of other programs, and a network. Against real agents and real listeners, in
//! every tier that this machine has; where a tier cannot, the request is refused.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod support;

mod granted {
    mod agents;
    mod network;
    mod policy;
    mod sockets;
}
