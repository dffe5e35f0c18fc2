/* Requests and their answers.
 *
 *     cc ping.c -I include -L ../../target/release -ltrimline -o ping
 *     ./ping serve 127.0.0.1:7000 127.0.0.1:7001
 *     ./ping ask 127.0.0.1:7000 127.0.0.1:7001 hello
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trimline.h"

enum { CLIENT = 0, SERVER = 1, PATIENCE_MS = 2000 };

static int serve(trimline_node *node) {
    trimline_message *request;
    int stop = 0;
    while (!stop && trimline_receive(node, 60 * 1000, &request) == TRIMLINE_OK) {
        const char *bytes = trimline_message_bytes(request);
        size_t length = trimline_message_length(request);
        stop = length == 4 && memcmp(bytes, "stop", 4) == 0;
        if (trimline_message_is_request(request))
            trimline_respond(node, request, bytes, length);
        printf("host %u: %.*s\n", trimline_message_from(request), (int)length, bytes);
        trimline_message_free(request);
    }
    return stop ? 0 : 1;
}

static int ask(trimline_node *node, const char *text) {
    trimline_message *answer;
    trimline_delivery *request = trimline_request(node, SERVER, text, strlen(text));
    trimline_outcome outcome = TRIMLINE_STOPPED;
    if (request)
        outcome = trimline_answer(request, PATIENCE_MS, &answer);
    if (outcome == TRIMLINE_OK) {
        printf("%.*s\n", (int)trimline_message_length(answer),
               (const char *)trimline_message_bytes(answer));
        trimline_message_free(answer);
    } else {
        fprintf(stderr, "no answer: %d\n", outcome);
    }
    trimline_delivery_free(request);
    return outcome;
}

int main(int argc, char **argv) {
    char error[200];
    if (argc < 4) {
        fprintf(stderr, "ping serve|ask CLIENT SERVER [TEXT]\n");
        return 2;
    }
    int serves = strcmp(argv[1], "serve") == 0;
    /* 32 letters, so that nobody else asks or answers. */
    const char *key = getenv("PING_KEY");
    if (key && strlen(key) != 32) {
        fprintf(stderr, "PING_KEY has 32 letters\n");
        return 2;
    }
    /* From how many ports packets leave. */
    const char *ports = getenv("PING_PORTS");
    const char *addresses[] = {argv[2], argv[3]};
    trimline_config config = {
        .transport = "homa",
        .payload = 1200,
        .me = serves ? SERVER : CLIENT,
        .addresses = addresses,
        .hosts = 2,
        .key = (const uint8_t *)key,
        .source_ports = ports ? (uint16_t)atoi(ports) : 1,
    };
    trimline_node *node = trimline_start(&config, error, sizeof error);
    if (!node) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    int result = serves ? serve(node) : ask(node, argc > 4 ? argv[4] : "hello");
    trimline_stop(node, PATIENCE_MS);
    return result;
}
