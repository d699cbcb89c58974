//! What the manifests vouch for and is not there.

use sde_archives::inspect::{Damage, Manifests, SegmentFile, SegmentId};

use crate::store::Store;

impl Store {
    /// What was there when a generation was made and is lost, with a text of which. `end` says up to where a segment can be
    /// read. Nothing is certain to be lost while there is a manifest of a later release: it may say why.
    pub fn lost(&self, end: impl Fn(&SegmentFile) -> u64) -> Vec<(Damage, String)> {
        let mut lost: Vec<(Damage, String)> = Vec::new();
        let mut told = Vec::new();
        for (file, info) in self.manifests.heads() {
            for listed in &info.segments {
                let mut segments = self.segments.iter();
                let there = segments.find(|segment| segment.id().ok() == listed.id);
                let (path, end, why) = match there {
                    Some(one) if self.manifests.replaced(one) > 0 => continue,
                    Some(one) => {
                        let why = "lost: it was there when the generation was made";
                        (one.path(), end(one), why)
                    }
                    None if is_replaced(&self.manifests, listed.id) => continue,
                    None if self.is_of_other_format(&listed.path) => continue,
                    None => {
                        let why = "the segment is lost, or its header is damaged";
                        (&*listed.path, 0, why)
                    }
                };
                if end < listed.length && !told.contains(&listed.id) {
                    told.push(listed.id);
                    let of = format!("vouched for by {}", file.name);
                    lost.push((Damage::new(path, end..listed.length, why), of));
                }
            }
        }
        lost
    }

    /// Whether all manifests can be read, so that what they say is certain.
    pub fn knows_all_generations(&self) -> bool {
        let mut files = self.manifests.files.iter();
        files.all(|one| one.other_format.is_none())
    }

    /// The manifests that are damaged.
    pub fn damaged_manifests(&self) -> impl Iterator<Item = Damage> {
        let files = self.manifests.files.iter();
        files.filter_map(|file| match (&file.content, file.other_format) {
            (Err(why), None) => Some(Damage::new(format!("manifests/{}", file.name), 0..0, why)),
            _ => None,
        })
    }

    fn is_of_other_format(&self, path: &str) -> bool {
        self.other_formats().any(|(other, _)| other == path)
    }
}

fn is_replaced(manifests: &Manifests, id: Option<SegmentId>) -> bool {
    let mut replaced = manifests.heads().flat_map(|(_, info)| &info.replaced);
    replaced.any(|one| one.id == id)
}
