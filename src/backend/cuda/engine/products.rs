//! Matrix products, gathered into launches.

use super::pass::{Pass, View};
use crate::backend::cuda::die::{DieError, Launcher};
use crate::backend::cuda::ops::product::{self, Batch, Finish, Kind, Member, Tiles, tiles_for};
use crate::model::ParamId;

/// A product to be launched: out = a b, finished in some way. It may be a sum of several, each finished before it is added.
pub struct Product {
    terms: Vec<Term>,
    finish: Finish,
    with: Option<View>,
    out: View,
}

struct Term {
    kind: Kind,
    a: View,
    b: View,
    shape: [u32; 3],
}

impl Product {
    fn new(kind: Kind, [a, b, out]: [View; 3], shape: [u32; 3]) -> Self {
        Self { terms: vec![Term { kind, a, b, shape }], finish: Finish::Set, with: None, out }
    }

    /// `out = base + a b`.
    pub fn onto(self, base: View) -> Self {
        Self { finish: Finish::Add, with: Some(base), ..self }
    }

    /// `out = f(a b)`, or with `with` as the finish says.
    pub fn finished(self, finish: Finish, with: Option<View>) -> Self {
        Self { finish, with, ..self }
    }

    /// Adds another finished product to this one; its `out` is this one's.
    pub fn plus(mut self, other: Self) -> Self {
        self.terms.extend(other.terms);
        self
    }

    fn members(self) -> impl Iterator<Item = Member> {
        let Self { terms, finish, with, out } = self;
        terms.into_iter().enumerate().map(move |(i, term)| {
            let (further, with) = if i == 0 { (false, with.as_ref()) } else { (true, None) };
            Member {
                kind: term.kind,
                finish: if further { Finish::Add } else { finish },
                further,
                a: (term.a.memory.input(), term.a.lane),
                b: (term.b.memory.input(), term.b.lane),
                with: with.unwrap_or(&out).memory.clone(),
                out: (out.memory.clone(), out.lane),
                shape: term.shape,
            }
        })
    }
}

impl<L: Launcher> Pass<'_, L> {
    fn matrix(&self, id: ParamId) -> View {
        View { memory: self.arenas.weights.write().at(id.range().start), lane: self.arenas.len }
    }

    /// `out = x W`.
    pub fn project(&self, x: View, id: ParamId, out: View) -> Product {
        let shape = [self.sizes.rows(), narrow(id.cols()), narrow(id.rows())];
        Product::new(Kind::Rows, [x, self.matrix(id), out], shape)
    }

    /// `out = dy Wᵀ`.
    pub fn project_back(&self, dy: View, id: ParamId, out: View) -> Product {
        let shape = [self.sizes.rows(), narrow(id.rows()), narrow(id.cols())];
        Product::new(Kind::Transposed, [dy, self.matrix(id), out], shape)
    }

    /// The gradient `xᵀ dy` of a matrix.
    pub fn matrix_grad(&self, x: View, dy: View, id: ParamId) -> Product {
        let out = View { memory: self.grad(id), lane: self.arenas.len };
        let shape = [narrow(id.rows()), narrow(id.cols()), self.sizes.rows()];
        let base = self.accumulate.then(|| out.clone());
        let product = Product::new(Kind::Columns, [x, dy, out], shape);
        if let Some(base) = base { product.onto(base) } else { product }
    }

    /// Launches products, none of which reads what another one writes.
    ///
    /// # Errors
    /// The die's.
    pub fn multiply(&mut self, products: impl IntoIterator<Item = Product>) -> Result<(), DieError> {
        let members: Vec<Member> = products.into_iter().flat_map(Product::members).collect();
        let tiles = tiles_for(self.lanes.lanes(), &members);
        let batch = Batch::new(self.lanes.clone(), members, tiles);
        match tiles {
            Tiles::Odd => self.to.launch(&product::Odd(batch)),
            Tiles::Small => self.to.launch(&product::Small(batch)),
            Tiles::Medium => self.to.launch(&product::Medium(batch)),
            Tiles::Wide => self.to.launch(&product::Wide(batch)),
        }
    }
}

/// A size that `Sizes::new` has found to be small.
fn narrow(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
