//! libpcap, loaded at run time: its compiler and its interpreter, by which tests judge capture filters.
//!
//! Only with the feature `libpcap`, which no part of the program asks for. Declared by hand is the part of
//! libpcap's interface that its 0.8 binary interface has had since 2004.

pub mod instruction;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use instruction::check;

use crate::packet::BpfInstruction;

/// The library's names: of Debian and of the others.
const NAMES: [&CStr; 2] = [c"libpcap.so.0.8", c"libpcap.so.1"];

/// Says that no netmask is known; `ip broadcast` is refused then.
const NETMASK_UNKNOWN: u32 = u32::MAX;

/// The number that files use for raw IP, and the one that Linux uses in programs.
const LINKTYPE_RAW: u16 = 101;
const DLT_RAW: u16 = 12;

/// What libpcap calls `struct bpf_program`.
#[repr(C)]
struct Program {
    count: c_uint,
    instructions: *mut BpfInstruction,
}

type OpenDead = unsafe extern "C" fn(c_int, c_int) -> *mut c_void;
type Compile = unsafe extern "C" fn(*mut c_void, *mut Program, *const c_char, c_int, u32) -> c_int;
type FreeCode = unsafe extern "C" fn(*mut Program);
type GetError = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type Close = unsafe extern "C" fn(*mut c_void);
type Version = unsafe extern "C" fn() -> *const c_char;
type Filter = unsafe extern "C" fn(*const BpfInstruction, *const u8, c_uint, c_uint) -> c_uint;

/// The loaded library, which is never unloaded.
#[derive(Clone, Copy, Debug)]
pub struct Libpcap {
    open_dead: OpenDead,
    compile: Compile,
    free_code: FreeCode,
    get_error: GetError,
    close: Close,
    version: Version,
    filter: Filter,
}

/// What libpcap made of an expression.
#[derive(Clone, Debug)]
pub struct Compiled {
    instructions: Vec<BpfInstruction>,
    filter: Filter,
}

/// A handle without an interface, closed when dropped.
struct Handle<'a> {
    libpcap: &'a Libpcap,
    pointer: *mut c_void,
}

impl Libpcap {
    /// Loads the library.
    ///
    /// # Errors
    /// If there is none, or it lacks a function; a test that needs it is skipped for that reason.
    pub fn load() -> Result<Self, String> {
        let mut missing = String::new();
        for name in NAMES {
            // SAFETY: the name ends with 0; libpcap has no initialisers that depend on the caller.
            let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
            if library.is_null() {
                missing = format!("{missing}{}; ", last_error());
                continue;
            }
            // SAFETY: the types are those of libpcap's headers, and it stays loaded.
            return unsafe {
                Ok(Self {
                    open_dead: function(library, c"pcap_open_dead")?,
                    compile: function(library, c"pcap_compile")?,
                    free_code: function(library, c"pcap_freecode")?,
                    get_error: function(library, c"pcap_geterr")?,
                    close: function(library, c"pcap_close")?,
                    version: function(library, c"pcap_lib_version")?,
                    filter: function(library, c"bpf_filter")?,
                })
            };
        }
        Err(format!("{missing}install libpcap, which comes with tcpdump"))
    }

    /// The library's words about itself, such as `libpcap version 1.10.3 (with TPACKET_V3)`.
    pub fn version(&self) -> String {
        // SAFETY: takes nothing; the text ends with 0, is copied here and lives as long as the library.
        unsafe { text((self.version)()) }
    }

    /// Compiles an expression for the link type of a capture file (1 for Ethernet, 101 for raw
    /// IP), without a netmask. A program of libpcap returns `snap_bytes` for what it takes.
    ///
    /// Names of hosts are looked up, by DNS if need be.
    ///
    /// # Errors
    /// libpcap's own words where it refuses the expression; where it makes a program that divides
    /// by zero or the like, that it `would harm its interpreter`.
    pub fn compile(
        &self,
        expression: &str,
        link_type: u16,
        snap_bytes: u32,
        optimise: bool,
    ) -> Result<Compiled, String> {
        let expression = CString::new(expression).map_err(|error| error.to_string())?;
        let handle = Handle::open(self, link_type, snap_bytes)?;
        let mut program = Program { count: 0, instructions: ptr::null_mut() };
        // SAFETY: handle and program live until after the call, and the expression ends with 0.
        let status = unsafe {
            let optimise = c_int::from(optimise);
            (self.compile)(
                handle.pointer,
                &mut program,
                expression.as_ptr(),
                optimise,
                NETMASK_UNKNOWN,
            )
        };
        if status != 0 {
            return Err(handle.error());
        }
        let instructions = if program.instructions.is_null() {
            Vec::new()
        } else {
            // SAFETY: a program that was made has as many instructions as it says.
            unsafe { std::slice::from_raw_parts(program.instructions, program.count as usize) }
                .to_vec()
        };
        // SAFETY: the program was made by `compile`; it is not used any more.
        unsafe { (self.free_code)(&mut program) };
        check(&instructions)
            .map_err(|reason| format!("libpcap's program would harm its interpreter: {reason}"))?;
        Ok(Compiled { instructions, filter: self.filter })
    }

    /// Whether libpcap's interpreter takes a frame of `wire_bytes` bytes, of which `data` was
    /// captured, by these instructions.
    ///
    /// Scratch memory that they read without having written it holds anything: see
    /// [`reads_unset_scratch`](instruction::reads_unset_scratch). Instructions that jump
    /// back may never end.
    ///
    /// # Panics
    /// If [`check`] refuses the instructions: the interpreter would end the process, or worse.
    pub fn run(&self, instructions: &[BpfInstruction], data: &[u8], wire_bytes: u32) -> bool {
        let checked = check(instructions);
        assert!(checked.is_ok(), "{checked:?}");
        interpret(self.filter, instructions, data, wire_bytes)
    }
}

impl Compiled {
    /// The program.
    pub fn instructions(&self) -> Vec<BpfInstruction> {
        self.instructions.clone()
    }

    /// Whether it takes a frame of `wire_bytes` bytes of which `data` was captured.
    ///
    /// A program of `protochain` never ends on a frame whose authentication headers lead back
    /// into each other.
    pub fn matches(&self, data: &[u8], wire_bytes: u32) -> bool {
        interpret(self.filter, &self.instructions, data, wire_bytes)
    }
}

impl<'a> Handle<'a> {
    fn open(libpcap: &'a Libpcap, link_type: u16, snap_bytes: u32) -> Result<Self, String> {
        let number = if link_type == LINKTYPE_RAW { DLT_RAW } else { link_type };
        let snap_bytes = c_int::try_from(snap_bytes).map_err(|error| error.to_string())?;
        // SAFETY: takes two numbers, any of which will do.
        let pointer = unsafe { (libpcap.open_dead)(c_int::from(number), snap_bytes) };
        if pointer.is_null() {
            return Err("no memory for a handle of libpcap".into());
        }
        Ok(Self { libpcap, pointer })
    }

    /// What the last call on the handle complained about.
    fn error(&self) -> String {
        // SAFETY: the handle is open; the text ends with 0, lives in the handle and is copied here.
        unsafe { text((self.libpcap.get_error)(self.pointer)) }
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and closed here alone.
        unsafe { (self.libpcap.close)(self.pointer) };
    }
}

/// Runs instructions that were checked.
fn interpret(
    filter: Filter,
    instructions: &[BpfInstruction],
    data: &[u8],
    wire_bytes: u32,
) -> bool {
    // More than 4 GiB of one frame are not looked at.
    let captured_bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    // SAFETY: `check` passed the instructions; the interpreter compares all offsets into `data`
    // with its length, writes nothing but its own memory and keeps neither pointer.
    unsafe { filter(instructions.as_ptr(), data.as_ptr(), wire_bytes, captured_bytes) != 0 }
}

/// The function `name` of a library.
///
/// # Safety
/// `F` is the type of a pointer to that function, and the library stays loaded.
unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> Result<F, String> {
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: the library was loaded, and the name ends with 0.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    if address.is_null() {
        return Err(format!("{}; install a libpcap of version 1.10", last_error()));
    }
    // SAFETY: of the same size, and the caller says what it is.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

/// Why the last attempt to load something in this thread failed.
fn last_error() -> String {
    // SAFETY: the text, if any, ends with 0 and belongs to this thread; it is copied here.
    unsafe { text(libc::dlerror()) }
}

/// Copies a text that ends with 0.
///
/// # Safety
/// `pointer` is null or leads to one.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller says so.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
