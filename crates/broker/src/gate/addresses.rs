//! The connections of each address at one listener.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Excess;
use crate::party::Party;
use crate::rate::{Bucket, Rate};

/// Addresses that are counted. Further ones are admitted without being counted, since any that is
/// in the table may be an honest one; the other limits hold for them.
pub(super) const ADDRESSES_MAX: usize = 65_536;
const SECOND_NS: u64 = 1_000_000_000;

/// Counts connections by address, or network of an IPv6 address.
#[derive(Debug)]
pub(super) struct AddressTable {
    open_max: u32,
    rate: Option<Rate>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    places: HashMap<Party, AddressPlace>,
    /// When addresses without connections were last looked for.
    swept_ns: u64,
}

#[derive(Debug, Default)]
struct AddressPlace {
    open: u32,
    new: Bucket,
}

/// One connection of an address, until it is dropped.
#[derive(Debug)]
pub(super) struct AddressPermit {
    table: Arc<AddressTable>,
    party: Party,
}

impl AddressTable {
    pub(super) fn new(open_max: Option<u32>, rate: Option<Rate>) -> Arc<Self> {
        let open_max = open_max.unwrap_or(u32::MAX);
        Arc::new(Self { open_max, rate, table: Mutex::default() })
    }

    /// A connection of an address comes. `None`: there is no room to count it.
    pub(super) fn enter(
        self: &Arc<Self>,
        address: IpAddr,
        now_ns: u64,
    ) -> Result<Option<AddressPermit>, Excess> {
        let party = Party::of(address);
        let mut table = self.lock();
        if !table.has_room_for(party, now_ns) {
            return Ok(None);
        }
        let place = table.places.entry(party).or_default();
        if place.open >= self.open_max {
            return Err(Excess::AddressFull);
        }
        if let Some(rate) = &self.rate
            && !place.new.try_take(rate, 1, now_ns)
        {
            return Err(Excess::AddressRate);
        }
        place.open += 1;
        Ok(Some(AddressPermit { table: Arc::clone(self), party }))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().places.len()
    }
}

impl Table {
    /// Makes room by forgetting addresses of which nothing is known, once a second at most: that
    /// looks at all of them.
    fn has_room_for(&mut self, party: Party, now_ns: u64) -> bool {
        if self.places.len() < ADDRESSES_MAX || self.places.contains_key(&party) {
            return true;
        }
        if now_ns.saturating_sub(self.swept_ns) >= SECOND_NS {
            self.swept_ns = now_ns;
            self.places.retain(|_, place| place.open > 0 || !place.new.is_settled(now_ns));
        }
        self.places.len() < ADDRESSES_MAX
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        let Some(place) = table.places.get_mut(&self.party) else { return };
        place.open = place.open.saturating_sub(1);
        if place.open == 0 && self.table.rate.is_none() {
            table.places.remove(&self.party);
        }
    }
}
