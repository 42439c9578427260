//! Where the key of the account and the certificates with their keys are kept.
//!
//! A folder for each directory of an authority, so that what a test authority has issued is not
//! taken for what another has. A certificate is one file, with its key: both are replaced by one
//! rename.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use weir_net::tls::server::{Ages, Certificate};

/// Bytes of a file that is read: a chain of a few certificates has some KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Bytes of the name of a folder.
const FOLDER_NAME_MAX: usize = 200;

/// Who may use the folder, and its files.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The file of the account and its key.
const ACCOUNT: &str = "account.json";

/// The files of one authority.
#[derive(Clone, Debug)]
pub struct Storage {
    folder: PathBuf,
}

impl Storage {
    /// Those of the authority with this `directory`, below `folder`.
    #[must_use]
    pub fn new(folder: &Path, directory: &str) -> Self {
        let place = directory.strip_prefix("https://").unwrap_or(directory);
        let in_name = |letter: char| match letter {
            letter if letter.is_ascii_alphanumeric() || letter == '.' => letter,
            _ => '-',
        };
        let name: String = place.chars().map(in_name).take(FOLDER_NAME_MAX).collect();
        let name = name.trim_start_matches(['.', '-']);
        Self {
            folder: folder.join(name),
        }
    }

    /// Makes the folder, for its owner alone, and tries whether files can be written there.
    ///
    /// # Errors
    ///
    /// They cannot.
    pub fn open(&self) -> io::Result<()> {
        // a reload and an order may try it at the same time, and one would remove the other's file
        static TRIED: Mutex<()> = Mutex::new(());
        let _one_at_a_time = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(&self.folder)?;
        self.take_back_rights()?;
        let probe = self.folder.join("probe");
        write_whole(&probe, b"")?;
        fs::remove_file(&probe)
    }

    /// Has the folder and its files be for their owner alone: they have the keys, and a copy from
    /// a backup may be for others.
    fn take_back_rights(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            // one may go meanwhile
            if let Ok(metadata) = fs::symlink_metadata(&path)
                && metadata.is_file()
            {
                restrict(&path, &metadata, FILE_MODE)?;
            }
        }
        restrict(&self.folder, &fs::metadata(&self.folder)?, FOLDER_MODE)
    }

    /// Where the files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of the certificate whose first name this is.
    #[must_use]
    pub fn certificate_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.pem"))
    }

    /// The certificate whose first name this is, of any age; `None` if there is none. `now_s` is
    /// the time, seconds since 1970.
    ///
    /// # Errors
    ///
    /// There is a file that cannot be read, or is no certificate with its key.
    pub fn certificate(&self, name: &str, now_s: u64) -> Result<Option<Certificate>, String> {
        let path = self.certificate_path(name);
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("`{}` cannot be read: {error}", path.display())),
        };
        let certificate = Certificate::from_pem(&text, &text, now_s, Ages::Any);
        let certificate = certificate.map_err(|error| format!("`{}`: {error}", path.display()));
        certificate.map(Some)
    }

    /// Replaces the certificate whose first name this is: `chain` and `key` are PEM.
    ///
    /// # Errors
    ///
    /// It cannot be written; the old one stays.
    pub fn put_certificate(&self, name: &str, chain: &str, key: &str) -> io::Result<()> {
        let text = format!("{}\n{}\n", key.trim_end(), chain.trim_end());
        write_whole(&self.certificate_path(name), text.as_bytes())
    }

    /// The text of the account; `None` if there is none.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn account(&self) -> io::Result<Option<Vec<u8>>> {
        match read(&self.account_path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => text.map(Some),
        }
    }

    /// Replaces the account.
    ///
    /// # Errors
    ///
    /// It cannot be written; the old one stays.
    pub fn put_account(&self, text: &[u8]) -> io::Result<()> {
        write_whole(&self.account_path(), text)
    }

    /// Where the account is.
    #[must_use]
    pub fn account_path(&self) -> PathBuf {
        self.folder.join(ACCOUNT)
    }

    /// Sets the account aside, which the authority does not know or which cannot be read; returns
    /// where it is from then on.
    ///
    /// # Errors
    ///
    /// It cannot be renamed.
    pub fn set_account_aside(&self) -> io::Result<PathBuf> {
        let aside = self.folder.join(format!("{ACCOUNT}.unknown"));
        fs::rename(self.account_path(), &aside)?;
        Ok(aside)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let file = File::open(path)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let what = format!("it is longer than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::other(what));
    }
    Ok(text)
}

/// Takes back the rights that `mode` does not give.
fn restrict(path: &Path, metadata: &Metadata, mode: u32) -> io::Result<()> {
    let now = metadata.permissions().mode();
    match now & 0o777 & !mode {
        0 => Ok(()),
        _ => fs::set_permissions(path, Permissions::from_mode(now & mode)),
    }
}

/// Replaces a file whole, which its owner alone can read: after a crash it is the old or the new
/// one.
fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_added_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        // left by a crash, or not there
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_tried_by_several_threads_at_once() {
        let place = tempfile::tempdir().expect("a folder");
        let storage = Storage::new(place.path(), "https://acme.example/directory");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        storage.open().expect("files can be written");
                    }
                });
            }
        });
    }

    #[test]
    fn authorities_have_folders_of_their_own() {
        let of = |directory: &str| {
            let storage = Storage::new(Path::new("/f"), directory);
            storage.folder().display().to_string()
        };
        assert_eq!(
            of("https://acme-v02.api.letsencrypt.org/directory"),
            "/f/acme-v02.api.letsencrypt.org-directory"
        );
        assert_eq!(of("https://[::1]:14000/dir"), "/f/1--14000-dir");
        assert_eq!(of("https://../../etc/passwd"), "/f/etc-passwd");
    }

    #[test]
    fn files_are_for_their_owner_and_replaced_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::new(&folder.path().join("acme"), "https://a.test/dir");
        storage.open().expect("it is made");
        let mode = |path: &Path| {
            let metadata = fs::metadata(path).expect("it is there");
            metadata.permissions().mode() & 0o777
        };
        assert_eq!(mode(storage.folder()), 0o700);
        assert_eq!(storage.account().expect("readable"), None);
        // what a crash has left does not matter
        let path = storage.folder().join(ACCOUNT);
        fs::write(path.with_added_extension("new"), "half").expect("written");
        for text in ["one", "two"] {
            storage.put_account(text.as_bytes()).expect("written");
            let read = storage.account().expect("readable");
            assert_eq!(read.as_deref(), Some(text.as_bytes()));
            assert_eq!(mode(&path), 0o600);
        }
        storage
            .put_certificate("a.test", "chain", "key")
            .expect("written");
        assert_eq!(mode(&storage.certificate_path("a.test")), 0o600);
        // copied from elsewhere
        for (path, mode) in [(storage.folder(), 0o755), (&path, 0o666)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
        }
        storage.open().expect("files can be written");
        assert_eq!((mode(storage.folder()), mode(&path)), (0o700, 0o600));
        let refused = storage
            .certificate("a.test", 0)
            .expect_err("no certificate");
        assert!(refused.contains("a.test.pem"), "{refused}");
        assert!(storage.certificate("b.test", 0).expect("none").is_none());
        storage.set_account_aside().expect("renamed");
        assert_eq!(storage.account().expect("readable"), None);
        let names = fs::read_dir(storage.folder()).expect("readable");
        assert_eq!(names.count(), 2, "nothing else is left");
    }

    #[test]
    fn folder_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        let storage = Storage::new(&file, "https://a.test/dir");
        assert!(storage.open().is_err());
    }
}
