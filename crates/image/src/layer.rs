//! Packs a tree into a compressed archive.

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::{
    Tree,
    blob::sha256,
    tree::{Content, Node},
};

/// Operating system "unknown" in the gzip header, so that the bytes do not depend on the machine.
const GZIP_SYSTEM: u8 = 255;

/// A tree, packed as a gzip-compressed tar archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Digest of the archive before compression; image configs refer to it.
    pub(crate) diff_id: String,
    pub(crate) compressed: Vec<u8>,
}

// === impl Layer ===

impl Layer {
    /// Packs a tree into a gzip-compressed tar archive.
    ///
    /// # Errors
    ///
    /// Returns an error if a path or a link target is too long for the ustar format.
    pub fn pack(tree: &Tree) -> io::Result<Self> {
        let archive = archive(tree)?;
        let mut gzip = GzBuilder::new()
            .mtime(0)
            .operating_system(GZIP_SYSTEM)
            .write(Vec::new(), Compression::best());
        gzip.write_all(&archive)?;
        Ok(Self {
            diff_id: sha256(&archive),
            compressed: gzip.finish()?,
        })
    }

    /// Returns the size of the compressed archive in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.compressed.len()
    }
}

fn archive(tree: &Tree) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for (path, node) in &tree.nodes {
        append(&mut archive, path, node, tree.modified)?;
    }
    archive.into_inner()
}

fn append(
    archive: &mut Builder<Vec<u8>>,
    path: &str,
    node: &Node,
    modified: u64,
) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_mode(node.mode);
    header.set_uid(node.owner.into());
    header.set_gid(node.owner.into());
    header.set_mtime(modified);
    header.set_size(0);
    match &node.content {
        Content::Directory => {
            header.set_entry_type(EntryType::Directory);
            archive.append_data(&mut header, format!("{path}/"), io::empty())
        }
        Content::File(bytes) => {
            header.set_entry_type(EntryType::Regular);
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, path, bytes.as_ref())
        }
        Content::Symlink(target) => {
            header.set_entry_type(EntryType::Symlink);
            archive.append_link(&mut header, path, target)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn packs_paths_modes_owners_links_and_content() {
        let tree = Tree::new()
            .modified(5)
            .file("bin/tool", 0o755, "program")
            .unwrap()
            .symlink("bin/alias", "tool")
            .unwrap()
            .directory("tmp", 0o1777, 7)
            .unwrap();
        let layer = Layer::pack(&tree).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(layer.compressed.as_slice()));
        let entries: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                let link = entry
                    .link_name()
                    .unwrap()
                    .map(|path| path.display().to_string());
                let header = entry.header();
                assert_eq!(header.mtime().unwrap(), 5);
                let path = entry.path().unwrap().display().to_string();
                (
                    path,
                    header.mode().unwrap(),
                    header.uid().unwrap(),
                    link.unwrap_or(text),
                )
            })
            .collect();
        let expected = [
            ("bin/", 0o755, 0, ""),
            ("bin/alias", 0o777, 0, "tool"),
            ("bin/tool", 0o755, 0, "program"),
            ("tmp/", 0o1777, 7, ""),
        ];
        let expected =
            expected.map(|(path, mode, uid, text)| (path.to_owned(), mode, uid, text.to_owned()));
        assert_eq!(entries, expected);
    }

    #[test]
    fn packs_the_same_bytes_for_any_order_of_adding() {
        let a = Tree::new()
            .file("a", 0o644, "a")
            .unwrap()
            .file("b", 0o644, "b")
            .unwrap();
        let b = Tree::new()
            .file("b", 0o644, "b")
            .unwrap()
            .file("a", 0o644, "a")
            .unwrap();
        assert_eq!(Layer::pack(&a).unwrap(), Layer::pack(&b).unwrap());
    }
}
