/* A machine whose clock differs by the seconds of CRASH_CLOCK. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, time);
    const char *difference = getenv("CRASH_CLOCK");
    if (result == 0 && id == CLOCK_REALTIME && difference)
        time->tv_sec += atol(difference);
    return result;
}
