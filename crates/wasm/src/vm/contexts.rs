//! The contexts of an instance: which exist, which messages pause, which wait for `proxy_done`.

use crate::abi::{Action, ContextId, ContextMap, Side};

/// The plugin context and the stream contexts.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    streams: ContextMap<Stream>,
    /// The number of the stream that was created last.
    last: u32,
    plugin_is_pending: bool,
    /// Contexts that the module completed by `proxy_done`, to be deleted after the callback.
    completed: Vec<ContextId>,
}

#[derive(Debug, Default)]
pub(crate) struct Stream {
    request: Message,
    response: Message,
    /// The module has sent a local response.
    pub(crate) has_responded: bool,
    is_pending: bool,
}

#[derive(Debug, Default)]
struct Message {
    is_paused: bool,
    is_in_callback: bool,
    /// The module continued the message within its callback.
    is_resumed: bool,
}

impl Stream {
    fn message(&mut self, side: Side) -> &mut Message {
        match side {
            Side::Request => &mut self.request,
            Side::Response => &mut self.response,
        }
    }

    /// A callback of the message begins.
    pub(crate) fn begin(&mut self, side: Side) {
        let message = self.message(side);
        message.is_in_callback = true;
        message.is_resumed = false;
    }

    /// A callback of the message gave `action`. A module that continued the message within the
    /// callback does not pause it.
    pub(crate) fn end(&mut self, side: Side, action: Action) -> Action {
        let message = self.message(side);
        message.is_in_callback = false;
        message.is_paused = action == Action::Pause && !message.is_resumed;
        match message.is_paused {
            true => Action::Pause,
            false => Action::Continue,
        }
    }

    /// The module continues the message. Says whether the host has something to continue: a second
    /// time it has not.
    pub(crate) fn resume(&mut self, side: Side) -> bool {
        let message = self.message(side);
        message.is_resumed = message.is_in_callback;
        std::mem::take(&mut message.is_paused) && !message.is_in_callback
    }
}

impl Contexts {
    /// A new stream, if there are fewer than `streams_max`.
    pub(crate) fn create(&mut self, streams_max: usize) -> Option<ContextId> {
        if self.streams.len() >= streams_max {
            return None;
        }
        // numbers come again after four thousand million streams; those in use are skipped
        loop {
            self.last = self.last.checked_add(1).unwrap_or(0);
            let id = ContextId::new(self.last).filter(|id| *id != ContextId::PLUGIN);
            if let Some(id) = id.filter(|id| !self.streams.contains_key(id)) {
                self.streams.insert(id, Stream::default());
                return Some(id);
            }
        }
    }

    /// The context of a number that the module gave.
    pub(crate) fn find(&self, number: u32) -> Option<ContextId> {
        let id = ContextId::new(number)?;
        (id == ContextId::PLUGIN || self.streams.contains_key(&id)).then_some(id)
    }

    pub(crate) fn stream(&mut self, id: ContextId) -> Option<&mut Stream> {
        self.streams.get_mut(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    fn pending(&mut self, id: ContextId) -> Option<&mut bool> {
        match id {
            ContextId::PLUGIN => Some(&mut self.plugin_is_pending),
            id => self.streams.get_mut(&id).map(|it| &mut it.is_pending),
        }
    }

    /// The context waits for `proxy_done`.
    pub(crate) fn set_pending(&mut self, id: ContextId) {
        if let Some(pending) = self.pending(id) {
            *pending = true;
        }
    }

    pub(crate) fn is_pending(&mut self, id: ContextId) -> bool {
        self.pending(id).is_some_and(|pending| *pending)
    }

    /// `proxy_done`: says whether the context waited for it.
    pub(crate) fn complete(&mut self, id: ContextId) -> bool {
        let was_pending = self.pending(id).is_some_and(std::mem::take);
        if was_pending {
            self.completed.push(id);
        }
        was_pending
    }

    /// A context that was completed and not deleted yet.
    pub(crate) fn take_completed(&mut self) -> Option<ContextId> {
        self.completed.pop()
    }

    pub(crate) fn remove(&mut self, id: ContextId) {
        self.streams.remove(&id);
    }

    pub(crate) fn clear(&mut self) {
        self.streams.clear();
        self.completed.clear();
        self.plugin_is_pending = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_use_and_of_the_plugin_are_skipped_when_they_come_again() {
        let mut contexts = Contexts::default();
        let first = contexts.create(3).unwrap();
        assert_eq!(first.number(), 2);
        contexts.last = u32::MAX - 1;
        assert_eq!(contexts.create(3).unwrap().number(), u32::MAX);
        assert_eq!(contexts.create(3).unwrap().number(), 3);
        assert_eq!(contexts.create(3), None);
        contexts.remove(first);
        assert!(contexts.create(3).is_some());
    }

    #[test]
    fn message_is_continued_once_and_only_after_a_pause() {
        let mut stream = Stream::default();
        assert!(!stream.resume(Side::Request));
        stream.begin(Side::Request);
        assert_eq!(stream.end(Side::Request, Action::Pause), Action::Pause);
        assert!(!stream.resume(Side::Response));
        assert!(stream.resume(Side::Request));
        assert!(!stream.resume(Side::Request));
    }

    #[test]
    fn message_continued_within_its_callback_does_not_pause() {
        let mut stream = Stream::default();
        stream.begin(Side::Response);
        assert!(!stream.resume(Side::Response));
        assert_eq!(stream.end(Side::Response, Action::Pause), Action::Continue);
        stream.begin(Side::Response);
        assert_eq!(stream.end(Side::Response, Action::Pause), Action::Pause);
    }

    #[test]
    fn context_is_completed_once_and_only_if_it_was_pending() {
        let mut contexts = Contexts::default();
        let id = contexts.create(1).unwrap();
        assert!(!contexts.complete(id));
        contexts.set_pending(id);
        assert!(contexts.complete(id));
        assert!(!contexts.complete(id));
        assert_eq!(contexts.take_completed(), Some(id));
        assert_eq!(contexts.take_completed(), None);
    }
}
