//! Refuses callers that run inside one of our own sessions, before anything of an interface is reached.

use std::{collections::HashMap, fmt, sync::Arc};

use zbus::{
    BoxDBusError, Connection, DBusError, Message, ObjectServer, OwnedVariant, Variant, fdo,
    message::Header,
    names::{InterfaceName, MemberName},
    object_server::{DispatchResult, Interface, SignalEmitter},
};

use super::{Callers, Error};

/// What an interface does once the answer to a call of its own is sent.
///
/// zbus's own notifier for that hides the types of what is answered from the introspection.
pub trait Answered {
    /// The answer to this call has been sent.
    fn answered(&self, call: &Header<'_>) -> impl Future<Output = ()> + Send;
}

impl Answered for fdo::ObjectManager {
    async fn answered(&self, _: &Header<'_>) {}
}

/// An interface, and who may reach it.
pub struct Guarded<I> {
    inner: I,
    callers: Arc<Callers>,
}

impl<I> Guarded<I> {
    /// Puts a guard before an interface.
    pub fn new(inner: I, callers: Arc<Callers>) -> Self {
        Self { inner, callers }
    }

    /// Checks a caller; what zbus asks for itself has no header and no caller.
    async fn check(&self, header: Option<&Header<'_>>) -> Result<(), Error> {
        match header {
            Some(header) => self.callers.check(header).await,
            None => Ok(()),
        }
    }
}

impl<I> fmt::Debug for Guarded<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl<I: Interface + Answered> Interface for Guarded<I> {
    fn name() -> InterfaceName<'static> {
        I::name()
    }

    async fn get(
        &self,
        property: &str,
        server: &ObjectServer,
        connection: &Connection,
        header: Option<&Header<'_>>,
        emitter: &SignalEmitter<'_>,
    ) -> Option<Result<OwnedVariant, BoxDBusError>> {
        match self.check(header).await {
            Ok(()) => self.inner.get(property, server, connection, header, emitter).await,
            Err(error) => Some(Err(Box::new(error))),
        }
    }

    async fn get_all(
        &self,
        server: &ObjectServer,
        connection: &Connection,
        header: Option<&Header<'_>>,
        emitter: &SignalEmitter<'_>,
    ) -> fdo::Result<HashMap<String, OwnedVariant>> {
        let denied = |error: Error| {
            fdo::Error::AccessDenied(error.description().unwrap_or_default().to_owned())
        };
        self.check(header).await.map_err(denied)?;
        self.inner.get_all(server, connection, header, emitter).await
    }

    fn set<'call>(
        &'call self,
        property: &'call str,
        value: &'call Variant<'_>,
        server: &'call ObjectServer,
        connection: &'call Connection,
        header: Option<&'call Header<'_>>,
        emitter: &'call SignalEmitter<'_>,
    ) -> DispatchResult<'call> {
        self.inner.set(property, value, server, connection, header, emitter)
    }

    async fn set_mut(
        &mut self,
        property: &str,
        value: &Variant<'_>,
        server: &ObjectServer,
        connection: &Connection,
        header: Option<&Header<'_>>,
        emitter: &SignalEmitter<'_>,
    ) -> Option<Result<(), BoxDBusError>> {
        self.inner.set_mut(property, value, server, connection, header, emitter).await
    }

    fn call<'call>(
        &'call self,
        server: &'call ObjectServer,
        connection: &'call Connection,
        message: &'call Message,
        name: MemberName<'call>,
    ) -> DispatchResult<'call> {
        match self.inner.call(server, connection, message, name) {
            DispatchResult::Async(call) => DispatchResult::Async(Box::pin(async move {
                let header = message.header();
                let denied = |error| Box::new(error) as BoxDBusError;
                self.check(Some(&header)).await.map_err(denied)?;
                call.await?;
                self.inner.answered(&header).await;
                Ok(())
            })),
            other => other,
        }
    }

    fn call_mut<'call>(
        &'call mut self,
        server: &'call ObjectServer,
        connection: &'call Connection,
        message: &'call Message,
        name: MemberName<'call>,
    ) -> DispatchResult<'call> {
        self.inner.call_mut(server, connection, message, name)
    }

    fn introspect_to_writer(&self, writer: &mut dyn fmt::Write, level: usize) {
        self.inner.introspect_to_writer(writer, level);
    }
}
