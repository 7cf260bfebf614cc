//! Logins that a backend behind HTTP decides: what it is sent, what its answers say, and those of
//! a short while ago. The requests themselves are made elsewhere.

mod answer;
mod remembered;
mod request;

pub use answer::{AnswerError, BackendAnswer};
pub use remembered::RememberedAnswers;
pub use request::{
    FieldError, FieldPlace, FilledRequest, LoginFields, RequestClient, UnknownPlaceholder,
};
