"""Signed-in users read, list and change accounts; ten others sign in once a second each."""

import os
import random

from locust import FastHttpUser, constant_throughput, events, task

PASSWORD = os.environ.get("PASSWORD", "seed password 1")

with open(os.environ.get("TOKENS", "data/tokens.txt"), encoding="ascii") as file:
    TOKENS = file.read().split()


class SignedInUser(FastHttpUser):
    """Takes another account for each request."""

    def headers(self):
        return {"Authorization": f"Bearer {random.choice(TOKENS)}"}

    @task(90)
    def read_account(self):
        self.client.get("/account", headers=self.headers())

    @task(5)
    def list_users(self):
        self.client.get("/users?limit=20", headers=self.headers(), name="/users")

    @task(5)
    def change_name(self):
        first_name = f"Ann {random.randrange(1000)}"
        self.client.put("/account", json={"firstName": first_name}, headers=self.headers())


class SigningInUser(FastHttpUser):
    """Each sign-in takes the service about 10 ms of CPU, so their number is bounded."""

    fixed_count = 10
    wait_time = constant_throughput(1)

    @task
    def sign_in(self):
        email = f"user{random.randint(1, len(TOKENS))}@seed.example"
        self.client.post("/account/sign-in", json={"email": email, "password": PASSWORD})


@events.quitting.add_listener
def fail_on_errors(environment, **_):
    """Locust alone fails at a single error."""
    total = environment.stats.total
    p99 = total.get_response_time_percentile(0.99) or 0
    environment.process_exit_code = 1 if total.fail_ratio > 0.001 or p99 > 2500 else 0
