//! A flood of refusals must not become one of lines.

use std::collections::HashMap;
use std::net::IpAddr;

/// Lines per second of one address.
const LINES_OF_ADDRESS: u32 = 10;
/// Lines per second, and addresses that are told apart in a second.
const LINES: u32 = 1_000;

/// Counts the events of a second.
#[derive(Debug, Default)]
pub(super) struct AuditThrottle {
    by_address: HashMap<IpAddr, Told>,
    told: u32,
    /// Of addresses that are not told apart.
    left_out: u64,
    has_left_out: bool,
}

#[derive(Debug, Default)]
struct Told {
    lines: u32,
    left_out: u64,
}

impl AuditThrottle {
    /// Whether an event is written. One that is not is counted.
    pub(super) fn admits(&mut self, address: Option<IpAddr>) -> bool {
        let is_known = address.is_none_or(|address| self.by_address.contains_key(&address));
        let has_place = is_known || self.by_address.len() < LINES as usize;
        let of_address = address.filter(|_| has_place);
        let told = of_address.map(|address| self.by_address.entry(address).or_default());
        let is_full = told.as_ref().is_some_and(|told| told.lines >= LINES_OF_ADDRESS);
        if has_place && !is_full && self.told < LINES {
            self.told += 1;
            if let Some(told) = told {
                told.lines += 1;
            }
            return true;
        }
        self.has_left_out = true;
        *told.map_or(&mut self.left_out, |told| &mut told.left_out) += 1;
        false
    }

    pub(super) const fn has_left_out(&self) -> bool {
        self.has_left_out
    }

    /// How many events were left out in the second that ends, by address.
    pub(super) fn end_of_second(&mut self) -> Vec<(Option<IpAddr>, u64)> {
        let Self { by_address, left_out, .. } = std::mem::take(self);
        let by_address = by_address.into_iter().map(|(ip, told)| (Some(ip), told.left_out));
        by_address.chain([(None, left_out)]).filter(|(_, left_out)| *left_out > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(number: u32) -> Option<IpAddr> {
        Some(IpAddr::from(number.to_be_bytes()))
    }

    #[test]
    fn one_address_does_not_take_the_lines_of_others() {
        let mut throttle = AuditThrottle::default();
        let admitted = (0..50).filter(|_| throttle.admits(ip(1))).count();
        assert_eq!(admitted, LINES_OF_ADDRESS as usize);
        assert!(throttle.has_left_out());
        assert!(throttle.admits(ip(2)) && throttle.admits(None));
        assert_eq!(throttle.end_of_second(), [(ip(1), 40)]);
        assert!(!throttle.has_left_out() && throttle.admits(ip(1)));
    }

    #[test]
    fn any_number_of_addresses_writes_so_many_lines_and_all_are_counted() {
        let mut throttle = AuditThrottle::default();
        let events = 5 * LINES;
        let admitted = (0..events).filter(|at| throttle.admits(ip(at % (2 * LINES)))).count();
        assert_eq!(admitted, LINES as usize);
        assert!(!throttle.admits(None));
        assert!(throttle.by_address.len() <= LINES as usize);
        let left_out: u64 = throttle.end_of_second().iter().map(|(_, count)| count).sum();
        assert_eq!(left_out + admitted as u64, u64::from(events) + 1);
    }
}
