/* Says whether membarrier was registered before main, and after the library was loaded. Its lock is used by a thread that ends when the library,
   if it was loaded, is gone. With an argument the program loads the library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef STATIC
void linked_section(void);
#endif

static int is_registered(void) {
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void (*section)(void);
static sem_t used, unloaded;

static void *use(void *argument) {
    section();
    sem_post(&used);
    sem_wait(&unloaded);
    return argument;
}

int main(int argc, char **argv) {
    int before = is_registered();
    void *library = 0;
#ifdef STATIC
    section = linked_section;
#else
    if (argc < 2) return 3;
    library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 4;
    }
    section = (void (*)(void))dlsym(library, "linked_section");
#endif
    (void)argc, (void)argv;
    int loaded = is_registered();
    pthread_t thread;
    sem_init(&used, 0, 0);
    sem_init(&unloaded, 0, 0);
    if (pthread_create(&thread, 0, use, 0)) return 5;
    sem_wait(&used);
    if (library) dlclose(library);
    sem_post(&unloaded);
    pthread_join(thread, 0);
    printf("%d %d\n", before, loaded);
    return 0;
}
