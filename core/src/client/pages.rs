//! Lists that come in pages: streams of all items, which fetch each page when the one before it has been read.

use std::vec;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, Stream, StreamExt as _};

use super::resources::{NativeModels, ResponsesInputItems};
use crate::api::operation::Operation;
use crate::api::operations::{LIST_NATIVE_MODELS, LIST_RESPONSE_INPUT_ITEMS};
use crate::api::types::{
    ListResponseInputItemsOrder, NativeModel, NativeModelList, ResponseItem, ResponseItemList,
};
use crate::transport::response::Response;
use crate::wire::error::{Error, ErrorKind};

/// Maximum number of failed fetches in a row. Then the stream ends, so that a reader that ignores errors stops.
const MAX_FAILED_FETCHES: usize = 16;

impl ResponsesInputItems<'_> {
    /// The items of all pages of [`list`](Self::list), beginning after the item `after`.
    ///
    /// The next page is fetched when the items before it have been read. Errors: those of `list`; Decode if a page leads back
    /// to an earlier one. After an error, the next read fetches the page again, at most 16 times in a row.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use futures_util::TryStreamExt as _;
    ///
    /// let mut items = client.responses().input_items().list_all("resp_1", None, Some(100), None);
    /// while let Some(item) = items.try_next().await? {
    ///     println!("{}", item.type_);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_all(
        &self,
        response_id: &str,
        after: Option<&str>,
        limit: Option<i64>,
        order: Option<ListResponseInputItemsOrder>,
    ) -> impl Stream<Item = Result<ResponseItem, Error>> + Send + Unpin + use<> {
        let (client, response_id) = (self.client.clone(), response_id.to_owned());
        let fetch = move |after: Option<String>| {
            let (client, response_id) = (client.clone(), response_id.clone());
            let page = async move {
                let items = ResponsesInputItems { client: &client };
                items.list(&response_id, after.as_deref(), None, limit, order).await
            };
            page.boxed()
        };
        items_of(&LIST_RESPONSE_INPUT_ITEMS, after.map(str::to_owned), fetch)
    }
}

impl NativeModels<'_> {
    /// The models of all pages of [`list`](Self::list).
    ///
    /// The next page is fetched when the models before it have been read. Errors: those of `list`; Decode if a page leads back
    /// to an earlier one. After an error, the next read fetches the page again, at most 16 times in a row.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use futures_util::TryStreamExt as _;
    ///
    /// let mut models = client.native().models().list_all(None);
    /// while let Some(model) = models.try_next().await? {
    ///     println!("{}", model.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_all(
        &self,
        page_size: Option<i64>,
    ) -> impl Stream<Item = Result<NativeModel, Error>> + Send + Unpin + use<> {
        let client = self.client.clone();
        let fetch = move |page_token: Option<String>| {
            let client = client.clone();
            async move { NativeModels { client: &client }.list(page_size, page_token.as_deref()).await }
                .boxed()
        };
        items_of(&LIST_NATIVE_MODELS, None, fetch)
    }
}

/// One page of a list.
trait Page: Send + 'static {
    type Item: Send + 'static;
    /// Where the next page begins: its token, or the last item of this one. None on the last page.
    fn next_cursor(&self) -> Option<&str>;
    fn into_items(self) -> Vec<Self::Item>;
}

impl Page for ResponseItemList {
    type Item = ResponseItem;

    fn next_cursor(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|_| self.has_more)
    }

    fn into_items(self) -> Vec<ResponseItem> {
        self.data
    }
}

impl Page for NativeModelList {
    type Item = NativeModel;

    fn next_cursor(&self) -> Option<&str> {
        // The JSON mapping of protocol buffers writes no token as an empty text.
        self.next_page_token.as_deref().filter(|token| !token.is_empty())
    }

    fn into_items(self) -> Vec<NativeModel> {
        self.models
    }
}

type PageFuture<P> = BoxFuture<'static, Result<Response<P>, Error>>;

/// The items of the page after `cursor`, or of the first page, and of all pages that follow.
fn items_of<P: Page>(
    operation: &'static Operation,
    cursor: Option<String>,
    fetch: impl Fn(Option<String>) -> PageFuture<P> + Send + Sync + 'static,
) -> BoxStream<'static, Result<P::Item, Error>> {
    let items = Vec::new().into_iter();
    let cycle = CycleDetector::default();
    let pages = Pages { operation, fetch, cursor, items, cycle, is_last: false, failed_fetches: 0 };
    stream::unfold(pages, Pages::next).fuse().boxed()
}

struct Pages<P: Page, F> {
    operation: &'static Operation,
    fetch: F,
    /// Where the next page begins.
    cursor: Option<String>,
    /// Unread items of the current page.
    items: vec::IntoIter<P::Item>,
    cycle: CycleDetector,
    is_last: bool,
    failed_fetches: usize,
}

impl<P: Page, F: Fn(Option<String>) -> PageFuture<P>> Pages<P, F> {
    async fn next(mut self) -> Option<(Result<P::Item, Error>, Self)> {
        loop {
            if let Some(item) = self.items.next() {
                return Some((Ok(item), self));
            }
            if self.is_last || self.failed_fetches > MAX_FAILED_FETCHES {
                return None;
            }
            let fetched = (self.fetch)(self.cursor.clone()).await;
            match fetched.and_then(|page| self.turn(page)) {
                Ok(()) => self.failed_fetches = 0,
                Err(error) => {
                    self.failed_fetches += 1;
                    return Some((Err(error), self));
                }
            }
        }
    }

    /// Turns to a page. Errors: Decode if the list leads back from it to an earlier page.
    fn turn(&mut self, page: Response<P>) -> Result<(), Error> {
        let cursor = page.next_cursor().map(str::to_owned);
        if let Some(cursor) = &cursor
            && self.cycle.closes_at(cursor)
        {
            // No later read can lead anywhere else.
            self.is_last = true;
            let error =
                Error::new(ErrorKind::Decode, "the list leads back to an earlier page").quoting(cursor);
            return Err(page.describe(error, self.operation));
        }
        self.is_last = cursor.is_none();
        self.cursor = cursor;
        self.items = page.into_inner().into_items().into_iter();
        Ok(())
    }
}

/// Notices that a list leads back to an earlier page. It compares each cursor with a single earlier one (Brent's algorithm), so
/// that the memory it needs doesn't grow with the list.
#[derive(Debug, Default)]
struct CycleDetector {
    earlier: Option<String>,
    /// Cursors since the earlier one.
    steps: u64,
    /// After how many steps another cursor takes its place.
    stride: u64,
}

impl CycleDetector {
    fn closes_at(&mut self, cursor: &str) -> bool {
        if self.earlier.as_deref() == Some(cursor) {
            return true;
        }
        if self.steps == self.stride {
            self.earlier = Some(cursor.to_owned());
            self.stride = self.stride.saturating_mul(2).max(1);
            self.steps = 0;
        }
        self.steps += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycle_of_any_length_is_noticed_and_a_long_list_is_none() {
        for (before, length) in [(0, 1), (0, 2), (3, 1), (5, 7), (100, 1000)] {
            let mut detector = CycleDetector::default();
            let cursor = |n: u64| if n < before { n } else { before + (n - before) % length };
            let noticed = (0..10_000).find(|n| detector.closes_at(&cursor(*n).to_string()));
            let noticed = noticed.expect("it leads back");
            assert!(noticed <= 3 * (before + length), "{before} and {length}: {noticed}");
        }
        let mut detector = CycleDetector::default();
        assert!((0..10_000).all(|n| !detector.closes_at(&n.to_string())));
    }
}
