"""The words of the project as frozen data: parsed once and never changed, unknown keys are errors."""
