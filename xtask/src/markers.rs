//! Parts of documents that are written again, between two lines that mark them.

/// `text` with `part` between the lines that mark the place called `name`; `None` without such a
/// place.
pub(crate) fn with_part(text: &str, name: &str, part: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let from = text.find(&begin)? + begin.len();
    let to = from + text.get(from..)?.find(&end)?;
    Some(format!("{}{part}{}", text.get(..from)?, text.get(to..)?))
}
