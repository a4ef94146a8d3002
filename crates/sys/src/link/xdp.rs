//! Which programs run on a link, from the attribute `IFLA_XDP`.

use netlink_packet_route::link::{LinkXdp, XdpAttached};

use crate::bpf::{XdpAttachment, XdpMode};

/// The programs that the kernel tells of: one, or one each in generic and hardware mode.
pub(super) fn attachments(attributes: &[LinkXdp]) -> Vec<XdpAttachment> {
    let mut attachments: Vec<XdpAttachment> = Vec::new();
    let mut attach = |mode, program_id| {
        if program_id != 0 && !attachments.iter().any(|known| known.mode == mode) {
            attachments.push(XdpAttachment { mode, program_id });
        }
    };
    let mut only = None;
    for attribute in attributes {
        match attribute {
            LinkXdp::DrvProgId(id) => attach(XdpMode::Native, *id),
            LinkXdp::SkbProgId(id) => attach(XdpMode::Generic, *id),
            LinkXdp::HwProgId(id) => attach(XdpMode::Hardware, *id),
            LinkXdp::ProgId(id) => only = Some(*id),
            _ => {}
        }
    }
    // Kernels before 4.19 tell one number and its mode.
    let mode = attributes.iter().find_map(|attribute| match attribute {
        LinkXdp::Attached(XdpAttached::Driver) => Some(XdpMode::Native),
        LinkXdp::Attached(XdpAttached::SocketBuffer) => Some(XdpMode::Generic),
        LinkXdp::Attached(XdpAttached::Hardware) => Some(XdpMode::Hardware),
        _ => None,
    });
    if let (Some(mode), Some(id)) = (mode, only) {
        attach(mode, id);
    }
    attachments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(mode: XdpMode, program_id: u32) -> XdpAttachment {
        XdpAttachment { mode, program_id }
    }

    #[test]
    fn one_program_is_told_once() {
        let told =
            [LinkXdp::Attached(XdpAttached::Driver), LinkXdp::ProgId(7), LinkXdp::DrvProgId(7)];
        assert_eq!(attachments(&told), [attachment(XdpMode::Native, 7)]);
        assert_eq!(attachments(&told[..2]), [attachment(XdpMode::Native, 7)]);
        assert_eq!(attachments(&[LinkXdp::Attached(XdpAttached::None)]), []);
    }

    #[test]
    fn two_programs_in_two_modes() {
        let told =
            [LinkXdp::Attached(XdpAttached::Multiple), LinkXdp::SkbProgId(3), LinkXdp::HwProgId(4)];
        let expected = [attachment(XdpMode::Generic, 3), attachment(XdpMode::Hardware, 4)];
        assert_eq!(attachments(&told), expected);
    }
}
