//! The far end of a veth: it refuses frames that are longer than its own MTU allows, and the near end
//! tells of that no more than that it had no room.

use std::time::{Duration, Instant};

use sys::link::{Link, Links};

use crate::error::Result;
use crate::queue::PortDescription;

/// How often it is looked at while frames are refused.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The far end as it was when it was last seen.
#[derive(Debug)]
pub(crate) struct FarEnd {
    links: Links,
    /// The near end's name.
    near: String,
    looked: Instant,
    /// `None` where there is none, or in a network namespace over which there is no right.
    link: Option<Link>,
}

impl FarEnd {
    /// Looks for what is behind an interface of the calling thread's namespace.
    pub(crate) fn open(near: &str) -> Result<Self> {
        let links = Links::current()?;
        let mut far = Self { links, near: near.into(), looked: Instant::now(), link: None };
        far.look();
        Ok(far)
    }

    /// Looks again: the near end may be another one of its name by now.
    pub(crate) fn look(&mut self) {
        let near = self.links.named(&self.near);
        // What cannot be seen says nothing against a frame.
        self.link = near.and_then(|near| self.links.far_end(&near)).ok().flatten();
        self.looked = Instant::now();
    }

    /// Looks again if the last look is some time ago: somebody may have changed its MTU.
    pub(crate) fn look_again(&mut self) {
        if self.link.is_some() && self.looked.elapsed() >= LOOK_AGAIN {
            self.look();
        }
    }

    /// Longest frame that it takes.
    pub(crate) fn frame_bytes_max(&self) -> usize {
        self.link.as_ref().map_or(usize::MAX, |link| link.frame_bytes_max_from_peer() as usize)
    }

    /// What the near end is, as far as the far end allows.
    pub(crate) fn limit(&self, near: &PortDescription) -> PortDescription {
        let mut both = near.clone();
        if let Some(far) =
            self.link.as_ref().filter(|_| self.frame_bytes_max() < near.frame_bytes_max)
        {
            both.frame_bytes_max = self.frame_bytes_max();
            both.longer_frames = Some(format!(
                "raise the MTU of the far end, {}, {} bytes",
                far.name, far.mtu_bytes
            ));
        }
        both
    }
}
