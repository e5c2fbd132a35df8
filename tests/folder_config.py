"""The settings that an encoder's folder provides."""

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.serialization.folder_settings import completed, read_saved, resolved
from bsl.models.errors import EncoderError, load_errors


def saved_config(folder, model):
    """Return the configuration of a folder's encoder if nobody sets anything."""
    with load_errors(folder, EncoderError):
        saved = read_saved(folder)
        return completed(saved, resolved(saved, EncoderConfig(model=model)))
