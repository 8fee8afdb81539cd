//! Maps each operation of the specification to its handler.

use std::sync::Arc;

use gatewright::operations::Operation;

use crate::app::App;
use crate::batches;
use crate::generated::routes::Service;
use crate::media;
use crate::models;
use crate::relay;
use crate::upstream::StoredAction;
use crate::wire::{ApiError, Call, Response};

/// The response of an operation; errors have the operation's own style.
fn finish(operation: &Operation, answer: Result<Response, ApiError>) -> Response {
    answer.unwrap_or_else(|error| error.into_response(operation.error_style))
}

/// The response of an operation on a stored response.
async fn stored(app: &Arc<App>, call: Call, action: StoredAction) -> Response {
    let operation = call.operation;
    finish(operation, Box::pin(relay::answer_stored(app, call, action)).await)
}

impl Service for Arc<App> {
    async fn create_chat_completion(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn create_message(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn count_message_tokens(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn create_response(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn compact_response(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn retrieve_response(&self, call: Call) -> Response {
        stored(self, call, StoredAction::Retrieve).await
    }

    async fn delete_response(&self, call: Call) -> Response {
        stored(self, call, StoredAction::Delete).await
    }

    async fn list_response_input_items(&self, call: Call) -> Response {
        stored(self, call, StoredAction::InputItems).await
    }

    async fn list_models(&self, call: Call) -> Response {
        models::list(&self.live.routes.load(), &call)
    }

    async fn retrieve_model(&self, call: Call) -> Response {
        finish(call.operation, models::retrieve(&self.live.routes.load(), &call))
    }

    async fn generate_content(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn stream_generate_content(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn count_tokens(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn list_native_models(&self, call: Call) -> Response {
        finish(call.operation, models::list_native(&self.live.routes.load(), &call))
    }

    async fn retrieve_native_model(&self, call: Call) -> Response {
        finish(call.operation, models::retrieve_native(&self.live.routes.load(), &call))
    }

    async fn create_embedding(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn create_rerank(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn create_moderation(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn create_speech(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn create_transcription(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn create_translation(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }

    async fn create_file(&self, call: Call) -> Response {
        finish(call.operation, Box::pin(batches::create_file(self, call)).await)
    }

    async fn list_files(&self, call: Call) -> Response {
        finish(call.operation, batches::list_files(self, &call).await)
    }

    async fn retrieve_file(&self, call: Call) -> Response {
        finish(call.operation, Box::pin(batches::retrieve_file(self, &call)).await)
    }

    async fn delete_file(&self, call: Call) -> Response {
        finish(call.operation, Box::pin(batches::delete_file(self, &call)).await)
    }

    async fn retrieve_file_content(&self, call: Call) -> Response {
        finish(call.operation, Box::pin(batches::content(self, &call)).await)
    }

    async fn create_batch(&self, call: Call) -> Response {
        finish(call.operation, Box::pin(batches::create_batch(self, call)).await)
    }

    async fn list_batches(&self, call: Call) -> Response {
        finish(call.operation, batches::list_batches(self, &call).await)
    }

    async fn retrieve_batch(&self, call: Call) -> Response {
        finish(call.operation, Box::pin(batches::retrieve_batch(self, &call)).await)
    }

    async fn cancel_batch(&self, call: Call) -> Response {
        finish(call.operation, Box::pin(batches::cancel_batch(self, &call)).await)
    }

    async fn create_video(&self, call: Call) -> Response {
        finish(call.operation, Box::pin(media::create_video(self, call)).await)
    }

    async fn retrieve_video(&self, call: Call) -> Response {
        finish(call.operation, media::retrieve_video(self, &call).await)
    }

    async fn create_image(&self, call: Call) -> Response {
        relay::answer(self, call).await
    }
}
