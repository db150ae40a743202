/* Holds a pod's namespaces: sleeps until it is told to end, and reaps what it inherits. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void finish(int signal) {
    (void)signal;
    _exit(0);
}

static void reap(int signal) {
    (void)signal;
    while (waitpid(-1, 0, WNOHANG) > 0) {
    }
}

int main(void) {
    signal(SIGTERM, finish);
    signal(SIGINT, finish);
    signal(SIGCHLD, reap);
    for (;;)
        pause();
}
