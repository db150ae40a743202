//! Checks a program's ELF header, so that no image contains a program that cannot start in it.

use anyhow::{Context, ensure};

const MAGIC: &[u8] = b"\x7fELF";
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
/// Type of the segment that names a dynamic loader (`PT_INTERP`).
const INTERPRETER: u32 = 3;

/// The machine of an ELF program, by its number in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Machine {
    X86_64 = 62,
    Aarch64 = 183,
}

/// Checks that a program is static and built for the machine.
pub(crate) fn check(program: &[u8], machine: Machine) -> anyhow::Result<()> {
    ensure!(
        program.starts_with(MAGIC) && program.get(4..6) == Some(&[CLASS_64, LITTLE_ENDIAN]),
        "it is not a 64-bit ELF program"
    );
    let number = u16::from_le_bytes(field(program, 18)?);
    ensure!(
        number == machine as u16,
        "it is for machine {number}, not for {machine:?}"
    );
    let headers = usize::try_from(u64::from_le_bytes(field(program, 32)?))?;
    let size = usize::from(u16::from_le_bytes(field(program, 54)?));
    let count = usize::from(u16::from_le_bytes(field(program, 56)?));
    for header in 0..count {
        let kind = u32::from_le_bytes(field(program, headers + header * size)?);
        ensure!(
            kind != INTERPRETER,
            "it is not static: the image has no loader for it"
        );
    }
    Ok(())
}

fn field<const N: usize>(program: &[u8], at: usize) -> anyhow::Result<[u8; N]> {
    program
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .context("its header is incomplete")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ELF header with one program header of this type.
    fn program(machine: Machine, kind: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..6].copy_from_slice(&[CLASS_64, LITTLE_ENDIAN]);
        bytes[18..20].copy_from_slice(&(machine as u16).to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64..68].copy_from_slice(&kind.to_le_bytes());
        bytes
    }

    #[test]
    fn accepts_only_static_programs_of_the_machine() {
        let error = |bytes: &[u8]| check(bytes, Machine::Aarch64).unwrap_err().to_string();
        check(&program(Machine::Aarch64, 1), Machine::Aarch64).unwrap();
        assert_eq!(
            error(&program(Machine::X86_64, 1)),
            "it is for machine 62, not for Aarch64"
        );
        assert!(error(&program(Machine::Aarch64, INTERPRETER)).starts_with("it is not static"));
        assert_eq!(error(b"#!/bin/sh"), "it is not a 64-bit ELF program");
        assert_eq!(
            error(&program(Machine::Aarch64, 1)[..66]),
            "its header is incomplete"
        );
    }

    #[test]
    fn rejects_the_dynamically_linked_test_program() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let machine = if cfg!(target_arch = "aarch64") {
            Machine::Aarch64
        } else {
            Machine::X86_64
        };
        assert!(
            check(&program, machine)
                .unwrap_err()
                .to_string()
                .starts_with("it is not static")
        );
    }
}
