//! Flame graphs: what `perf script` printed enters, [`Folded`] stacks leave; folded stacks of one
//! profile or of two enter, a drawing leaves. Pure, but for [`perf`], which takes the samples.

mod draw;
mod folded;
pub mod perf;

pub use draw::{Captions, difference, single};
pub use folded::Folded;
