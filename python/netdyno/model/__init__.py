"""The data of the project as frozen types: parsed once and never changed, unknown keys are errors."""
