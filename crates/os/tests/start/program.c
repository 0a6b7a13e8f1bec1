/* Says whether membarrier was registered before main, and whether the library's lock works. With an argument it loads the library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef STATIC
void linked_section(void);
#endif

static int is_registered(void) {
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

int main(int argc, char **argv) {
    int before = is_registered();
    void (*section)(void) = 0;
#ifdef STATIC
    section = linked_section;
#else
    if (argc < 2) return 3;
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 4;
    }
    section = (void (*)(void))dlsym(library, "linked_section");
#endif
    (void)argc, (void)argv;
    int loaded = is_registered();
    section();
    printf("%d %d\n", before, loaded);
    return 0;
}
