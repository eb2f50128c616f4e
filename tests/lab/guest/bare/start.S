/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the boot loader (QEMU's -kernel, by the Multiboot specification) enters: in protected
 * mode, flat segments, no paging, interrupts off, %ebx pointing to what it has to say.
 */
#define MAGIC 0x1badb002
#define FLAGS 0x2 /* tell us the size of the memory */

    .section .multiboot, "a"
    .align 4
    .long MAGIC
    .long FLAGS
    .long -(MAGIC + FLAGS)

    .text
    .globl start
start:
    mov $stack_top, %esp
    push $0
    popf
    lgdt gdt_pointer
    ljmp $0x08, $1f
1:  mov $0x10, %ax
    mov %ax, %ds
    mov %ax, %es
    mov %ax, %fs
    mov %ax, %gs
    mov %ax, %ss
    push %ebx
    call bare_main
2:  cli
    hlt
    jmp 2b

    /* The loader's own table need not be there any more. */
    .section .rodata
    .align 8
gdt:
    .quad 0
    .quad 0x00cf9a000000ffff /* code: all of the memory */
    .quad 0x00cf92000000ffff /* data: the same */
gdt_pointer:
    .word gdt_pointer - gdt - 1
    .long gdt

    .bss
    .align 16
    .skip 16384
stack_top:

    .section .note.GNU-stack, "", @progbits
