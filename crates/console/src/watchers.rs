//! Browsers that follow the events of a run: a bounded number, and a newcomer always gets a place.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Those that are there, in the order in which they came.
#[derive(Clone, Debug)]
pub(crate) struct Watchers {
    max: usize,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    present: Vec<Present>,
}

#[derive(Debug)]
struct Present {
    id: u64,
    peer: IpAddr,
    displaces: oneshot::Sender<()>,
}

/// The place of one of them, given back on drop.
#[derive(Debug)]
pub(crate) struct WatcherPlace {
    id: u64,
    watchers: Watchers,
}

impl Watchers {
    pub(crate) fn new(max: usize) -> Self {
        Self { max: max.max(1), table: Arc::default() }
    }

    /// A place for a browser at `peer`, and the news that it has lost it to a later one. Where all
    /// places are taken, the one that has been there longest goes, of the address with most of
    /// them, the newcomer counted: who takes all places displaces itself.
    pub(crate) fn enter(&self, peer: IpAddr) -> (WatcherPlace, oneshot::Receiver<()>) {
        let (displaces, displaced) = oneshot::channel();
        let mut table = self.lock();
        if table.present.len() >= self.max
            && let Some(at) = table.to_displace(peer)
        {
            // Fails only where it has just gone by itself.
            let _ = table.present.remove(at).displaces.send(());
        }
        let id = table.next;
        table.next += 1;
        table.present.push(Present { id, peer, displaces });
        drop(table);
        (WatcherPlace { id, watchers: self.clone() }, displaced)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn to_displace(&self, newcomer: IpAddr) -> Option<usize> {
        let of_peer = |peer: IpAddr| {
            let present = self.present.iter().filter(|present| present.peer == peer).count();
            present + usize::from(peer == newcomer)
        };
        let most = self.present.iter().map(|present| of_peer(present.peer)).max()?;
        self.present.iter().position(|present| of_peer(present.peer) == most)
    }
}

impl Drop for WatcherPlace {
    fn drop(&mut self) {
        self.watchers.lock().present.retain(|present| present.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    fn is_displaced(displaced: &mut oneshot::Receiver<()>) -> bool {
        displaced.try_recv().is_ok()
    }

    #[test]
    fn the_oldest_of_the_address_with_most_goes() {
        let watchers = Watchers::new(4);
        let mut all: Vec<_> = [1, 2, 2, 3].map(|last| watchers.enter(address(last))).into();
        all.push(watchers.enter(address(4)));
        let gone: Vec<bool> = all.iter_mut().map(|(_, gone)| is_displaced(gone)).collect();
        assert_eq!(gone, [false, true, false, false, false]);
        // One each by now: the newcomer's address has most.
        all.push(watchers.enter(address(3)));
        let gone: Vec<bool> = all.iter_mut().map(|(_, gone)| is_displaced(gone)).collect();
        assert_eq!(gone, [false, false, false, true, false, false]);
    }

    #[test]
    fn places_come_back_and_those_of_displaced_ones_only_once() {
        let watchers = Watchers::new(2);
        let (first, _displaced) = watchers.enter(address(1));
        let (second, mut of_second) = watchers.enter(address(1));
        let (_third, mut of_third) = watchers.enter(address(1));
        drop(first);
        assert_eq!(watchers.lock().present.len(), 2);
        drop(second);
        let (_fourth, _displaced) = watchers.enter(address(1));
        assert!(!is_displaced(&mut of_second) && !is_displaced(&mut of_third));
    }
}
