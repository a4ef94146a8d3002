//! Instructions in the notation of `tcpdump -d`.

use super::{
    ABS, ALU, IMM, IND, Instruction, JA, JEQ, JGE, JGT, JMP, JSET, LD, LDX, LEN, MEM, MISC, MSH,
    RET, ST, STX, TAX, X,
};

/// The instruction at `place`.
pub(super) fn text(place: usize, instruction: &Instruction) -> String {
    let Instruction { code, jt, jf, k } = *instruction;
    let size = match code & 0x18 {
        0x08 => "h",
        0x10 => "b",
        _ => "",
    };
    let (name, operand) = match code & 0x07 {
        LD => match code & 0xe0 {
            ABS => (format!("ld{size}"), format!("[{}]", address(k))),
            IND => (format!("ld{size}"), format!("[x + {}]", k.cast_signed())),
            MEM => ("ld".into(), format!("M[{k}]")),
            LEN => ("ld".into(), "#pktlen".into()),
            IMM => ("ld".into(), format!("#{k:#x}")),
            _ => return unknown(code),
        },
        LDX => match code & 0xe0 {
            MSH => ("ldxb".into(), format!("4*([{k}]&0xf)")),
            MEM => ("ldx".into(), format!("M[{k}]")),
            IMM => ("ldx".into(), format!("#{k:#x}")),
            _ => return unknown(code),
        },
        ST => ("st".into(), format!("M[{k}]")),
        STX => ("stx".into(), format!("M[{k}]")),
        ALU => {
            let name = match code & 0xf0 {
                0x00 => "add",
                0x10 => "sub",
                0x20 => "mul",
                0x30 => "div",
                0x40 => "or",
                0x50 => "and",
                0x60 => "lsh",
                0x70 => "rsh",
                0x90 => "mod",
                0xa0 => "xor",
                _ => return unknown(code),
            };
            let operand = match name {
                _ if code & X != 0 => "x".into(),
                "and" | "or" | "xor" => format!("#{k:#x}"),
                _ => format!("#{}", k.cast_signed()),
            };
            (name.into(), operand)
        }
        JMP => {
            let name = match code & 0xf0 {
                JA => return format!("{:<8} {}", "ja", (place as u32 + 1).wrapping_add(k)),
                JEQ => "jeq",
                JGT => "jgt",
                JGE => "jge",
                JSET => "jset",
                _ => return unknown(code),
            };
            let operand = if code & X != 0 { "x".into() } else { format!("#{k:#x}") };
            let [jt, jf] = [jt, jf].map(|jump| place + 1 + usize::from(jump));
            return format!("{name:<8} {operand:<16} jt {jt}\tjf {jf}");
        }
        RET => ("ret".into(), format!("#{k}")),
        MISC if code & 0xf8 == TAX => ("tax".into(), String::new()),
        MISC => ("txa".into(), String::new()),
        _ => return unknown(code),
    };
    format!("{name:<8} {operand}")
}

fn unknown(code: u16) -> String {
    format!("unimp    {code:#x}")
}

/// An offset, or the name of one of the kernel's facts.
fn address(k: u32) -> String {
    match k {
        crate::meaning::PACKET_TYPE => "type".into(),
        crate::meaning::INTERFACE => "ifidx".into(),
        _ => k.cast_signed().to_string(),
    }
}
