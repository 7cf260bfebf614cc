//! A short notation for packets in tables.
//!
//! Hex digits stand for bytes, `'abc'` for the bytes of a text, `<abc>` for a text behind its
//! length in two bytes, `[ .. ]` for its content behind its length as a variable byte integer, and
//! `|` for the length of everything after it. White space is ignored.

use tacho_codec::VARINT_MAX;

/// The bytes of a notation.
pub fn bytes(notation: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut open = Vec::new();
    let mut whole_rest = None;
    let mut chars = notation.chars().filter(|c| *c != '\n').peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' => {}
            '\'' => {
                out.extend(chars.by_ref().take_while(|c| *c != '\'').collect::<String>().bytes())
            }
            '<' => {
                let text: String = chars.by_ref().take_while(|c| *c != '>').collect();
                out.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
                out.extend(text.bytes());
            }
            '[' => open.push(out.len()),
            ']' => insert_len(&mut out, open.pop().expect("an open bracket")),
            '|' => whole_rest = Some(out.len()),
            high => {
                let low = chars.next().expect("two hex digits");
                out.push(u8::from_str_radix(&format!("{high}{low}"), 16).expect("hex digits"));
            }
        }
    }
    assert!(open.is_empty(), "a bracket is not closed: {notation}");
    if let Some(start) = whole_rest {
        insert_len(&mut out, start);
    }
    out
}

fn insert_len(out: &mut Vec<u8>, start: usize) {
    let mut len = u32::try_from(out.len() - start).unwrap();
    assert!(len <= VARINT_MAX);
    let mut at = start;
    loop {
        let more = len > 0x7F;
        out.insert(at, (len as u8 & 0x7F) | if more { 0x80 } else { 0 });
        at += 1;
        len >>= 7;
        if !more {
            return;
        }
    }
}
