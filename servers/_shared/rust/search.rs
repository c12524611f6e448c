//! The C library's search, as the C++ servers have it: the standard library's own has no fast one for bytes.

/// Where `byte` is first.
pub fn find_byte(bytes: &[u8], byte: u8) -> Option<usize> {
    // SAFETY: memchr(3) reads the bytes of the slice and no others.
    let found = unsafe { libc::memchr(bytes.as_ptr().cast(), byte.into(), bytes.len()) };
    offset(bytes, found)
}

/// Where `mark` begins first.
pub fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    // SAFETY: memmem(3) reads the bytes of the slices and no others.
    let found = unsafe { libc::memmem(bytes.as_ptr().cast(), bytes.len(), mark.as_ptr().cast(), mark.len()) };
    offset(bytes, found)
}

fn offset(bytes: &[u8], found: *const libc::c_void) -> Option<usize> {
    (!found.is_null()).then(|| found as usize - bytes.as_ptr() as usize)
}
