//! What a model is, and which upstreams serve it.

use super::{read, with, wrong};
use crate::ModelKind;

#[test]
fn model_kind_comes_from_the_file_or_the_catalog() {
    let of = |id: &str, lines: &str| {
        let text = format!(
            "[upstreams.one]\nkind = \"chat\"\nbase_url = \"https://one.example/v1\"\n[models.{id}]\n\
             targets = [{{ upstream = \"one\" }}]\n{lines}\n"
        );
        let config = read(&text).unwrap_or_else(|problems| panic!("{problems}")).config;
        let model = config.models.into_iter().next().expect("a model");
        (model.kind, model.limits, model.family)
    };
    let limits = |id: &str| Some(id.to_owned());
    let (media, family) = ("gateway".to_owned(), "family_one".to_owned());
    assert_eq!(of("m", ""), (ModelKind::Text, None, family.clone()));
    assert_eq!(of("image_model_2", ""), (ModelKind::Image, limits("image_model_2"), media.clone()));
    assert_eq!(
        of("m", "limits = \"video_model_1\""),
        (ModelKind::Video, limits("video_model_1"), media.clone())
    );
    assert_eq!(
        of("embedding_model_1", ""),
        (ModelKind::Embedding, limits("embedding_model_1"), media.clone())
    );
    assert_eq!(of("m", "kind = \"embedding\""), (ModelKind::Embedding, None, media.clone()));
    assert_eq!(of("rerank_model_1", ""), (ModelKind::Rerank, limits("rerank_model_1"), media.clone()));
    assert_eq!(of("m", "kind = \"moderation\""), (ModelKind::Moderation, None, media.clone()));
    assert_eq!(of("m", "kind = \"speech\""), (ModelKind::Speech, None, media.clone()));
    assert_eq!(of("m", "kind = \"transcription\""), (ModelKind::Transcription, None, media.clone()));
    assert_eq!(of("m", "kind = \"image\""), (ModelKind::Image, None, media.clone()));
    let other = "kind = \"video\"\nlimits = \"video_model_4\"";
    assert_eq!(of("video_model_1", other), (ModelKind::Video, limits("video_model_4"), media));
    assert_eq!(of("image_model_2", "kind = \"text\""), (ModelKind::Text, None, family));
}

#[test]
fn invalid_options_of_models_that_are_not_text_are_reported() {
    let images = "image_model_1, image_model_2, image_model_3, image_model_4, image_model_5";
    let videos = "video_model_1, video_model_2, video_model_3, video_model_4";
    for (lines, expected) in [
        (
            "limits = \"picture\"",
            format!("models.m.limits: must be a model of the catalog: embedding_model_1, {images}, {videos}"),
        ),
        (
            "limits = \"model-sol\"",
            format!("models.m.limits: must be a model of the catalog: embedding_model_1, {images}, {videos}"),
        ),
        (
            "kind = \"video\"\nlimits = \"image_model_1\"",
            format!("models.m.limits: must be a model of the catalog: {videos}"),
        ),
        (
            "kind = \"text\"\nlimits = \"image_model_1\"",
            "models.m.limits: is only for embedding, image and video models, but this is a text model"
                .to_owned(),
        ),
        (
            "kind = \"rerank\"\nlimits = \"image_model_1\"",
            "models.m.limits: is not for rerank models: they have no limits".to_owned(),
        ),
        (
            "kind = \"image\"\ntranslate_responses = true",
            "models.m.translate_responses: is only for text models".to_owned(),
        ),
    ] {
        let error = wrong(&with("", lines));
        assert!(error.ends_with(&expected) && error.lines().count() == 1, "{error}");
    }
    for (kind, model, expected) in [
        (
            "native",
            "image_model_1",
            "this upstream is of the kind native, which does not support images and videos",
        ),
        (
            "messages",
            "embedding_model_1",
            "this upstream is of the kind messages, which does not support embeddings",
        ),
        (
            "messages",
            "rerank_model_1",
            "is of the kind messages, which does not support rankings; the kinds chat, responses, gatewright",
        ),
        ("native", "moderation_model_1", "is of the kind native, which does not support moderations"),
        ("native", "speech_model_1", "is of the kind native, which does not support speech"),
        ("messages", "transcription_model_1", "of the kind messages, which does not support transcriptions"),
        ("converse", "embedding_model_1", "the kinds chat, responses, native, gatewright and simulator do"),
    ] {
        let text = format!(
            "[upstreams.one]\nkind = \"{kind}\"\nbase_url = \"https://one.example\"\n[models.{model}]\n\
             targets = [{{ upstream = \"one\" }}]\n"
        );
        let error = wrong(&text);
        assert!(error.contains(&format!("models.{model}.targets[0].upstream: ")), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
